// WordPiece: a sentence to words, words to pieces, pieces to ids, as BERT does it (Devlin et al. 2019; Wu et al. 2016).

// Chinese characters, each of which is a word: the blocks that BERT's tokenizers know.
const IDEOGRAPHS = new RegExp("[\\u4E00-\\u9FFF\\u3400-\\u4DBF\\u{20000}-\\u{2A6DF}\\u{2A700}-\\u{2B81F}"
  + "\\u{2B920}-\\u{2CEAF}\\uF900-\\uFAFF\\u{2F800}-\\u{2FA1F}]", "gu");
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\uFFFD]/gu; // control characters, formats, private ones
const ACCENTS = /\p{Mn}/gu; // in NFD they stand behind their letter
const WORDS = /[!-/:-@[-`{-~\p{P}]|[^\s!-/:-@[-`{-~\p{P}]+/gu; // a punctuation mark, or letters up to one
const LONGEST = 100; // characters of a word that is looked up

// "We can't!" to ["we", "can", "'", "t", "!"]. Small letters one by one: a Greek sigma would look at its neighbours.
export function wordsOf(text, lowercase = true) {
  let clean = text.replace(INVISIBLE, "").replace(IDEOGRAPHS, " $& ");
  if (lowercase) {
    clean = clean.normalize("NFD").replace(ACCENTS, "");
    clean = Array.from(clean, (letter) => letter.toLowerCase()).join("");
  }
  return clean.match(WORDS) ?? [];
}

// The same for a text in which [MASK] may be written: it is one word, whose name no other word can have.
export const MASK = "[MASK]";
export function wordsAndMasks(text, lowercase = true) {
  return text.split(/\[mask\]/i).flatMap((part, n) => [...(n ? [MASK] : []), ...wordsOf(part, lowercase)]);
}

// The longest piece that the vocabulary has, again and again from left to right; pieces inside a word begin with ##.
// `ids` is a Map from pieces to numbers. Null: the word has a part that is no piece. `told` gets where each search
// began, and where it ended: there, if nothing was found.
export function pieces(word, ids, told) {
  const letters = Array.from(word), found = [];
  if (letters.length > LONGEST) return null;
  for (let start = 0, end; start < letters.length; start = end) {
    const piece = () => (start ? "##" : "") + letters.slice(start, end).join("");
    for (end = letters.length; end > start && !ids.has(piece()); end--);
    told?.push({ start, end });
    if (end === start) return null;
    found.push(ids.get(piece()));
  }
  return found;
}
