// WordPiece as in BERT: sentences to words, words to pieces, pieces to ids (Devlin et al. 2019; Wu et al. 2016).

// Chinese characters, each of which is a word: the Unicode blocks that BERT's tokenizers know.
const IDEOGRAPHS = new RegExp("[\\u4E00-\\u9FFF\\u3400-\\u4DBF\\u{20000}-\\u{2A6DF}\\u{2A700}-\\u{2B81F}"
  + "\\u{2B920}-\\u{2CEAF}\\uF900-\\uFAFF\\u{2F800}-\\u{2FA1F}]", "gu");
const INVISIBLE = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\uFFFD]/gu; // control, format and private-use characters
const ACCENTS = /\p{Mn}/gu; // in NFD they follow their letter
const WORDS = /[!-/:-@[-`{-~\p{P}]|[^\s!-/:-@[-`{-~\p{P}]+/gu; // a punctuation mark, or a run of other characters
const LONGEST = 100; // most characters of a word that is looked up

// "We can't!" to ["we", "can", "'", "t", "!"]. Lowercased letter by letter, since a Greek sigma depends on its
// neighbours.
export function wordsOf(text, lowercase = true) {
  let clean = text.replace(INVISIBLE, "").replace(IDEOGRAPHS, " $& ");
  if (lowercase) {
    clean = clean.normalize("NFD").replace(ACCENTS, "");
    clean = Array.from(clean, (letter) => letter.toLowerCase()).join("");
  }
  return clean.match(WORDS) ?? [];
}

// The same for a text that may contain [MASK], which becomes one word with a name that no other word can have.
export const MASK = "[MASK]";
export function wordsAndMasks(text, lowercase = true) {
  return text.split(/\[mask\]/i).flatMap((part, n) => [...(n ? [MASK] : []), ...wordsOf(part, lowercase)]);
}

// Takes the longest piece in the vocabulary, again and again from left to right; pieces inside a word begin with ##.
// `ids` is a Map from pieces to ids. Returns null if a part of the word is no piece or the word is too long. `told`
// receives where each search began and where its piece ended: at its beginning, if none was found.
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
