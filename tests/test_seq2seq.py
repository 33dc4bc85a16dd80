from typing import Any

import pytest
import torch
from torch import nn

from attnbook.model.recording import recorded
from attnbook.model.scores import (
    AdditiveScore,
    BilinearScore,
    DotScore,
    LastKeyScore,
    ScaledDotScore,
)
from attnbook.model.seq2seq import (
    GRU,
    Decoder,
    Encoder,
    GRUCell,
    LuongDecoder,
    MultiHeadDecoder,
    RNNsearchDecoder,
    Seq2Seq,
)
from attnbook.text.vocabulary import Pairs, Vocabulary

ENGLISH, GERMAN = Vocabulary("abcdefg"), Vocabulary("ABCDEFGH")  # 10 and 11 tokens
PAD, BOS, EOS = GERMAN.pad, GERMAN.bos, GERMAN.eos
SOURCE = torch.tensor(
    [[5, 6, 7, 8, 9], [4, 3, PAD, PAD, PAD], [6, 6, 6, PAD, PAD], [7, PAD, PAD, PAD, PAD]]
)
TARGET = torch.tensor(
    [
        [BOS, 3, 4, 5, 6, 7, EOS],
        [BOS, 5, EOS, PAD, PAD, PAD, PAD],
        [BOS, 8, 8, 8, 8, EOS, PAD],
        [BOS, 9, 4, EOS, PAD, PAD, PAD],
    ]
)
# decoder, score, two-way encoder, layers
KINDS = {
    "plain": (Decoder, lambda: None, False, 1),
    "last": (Decoder, LastKeyScore, False, 1),
    "additive": (Decoder, lambda: AdditiveScore(6, 6, 4), False, 1),
    "two-way": (Decoder, lambda: BilinearScore(6, 6), True, 1),
    "luong": (LuongDecoder, DotScore, True, 1),
    "rnnsearch": (RNNsearchDecoder, lambda: AdditiveScore(6, 6, 4), True, 1),
    "deep plain": (Decoder, lambda: None, False, 2),
    "deep": (Decoder, lambda: AdditiveScore(6, 6, 4), True, 3),
    "deep rnnsearch": (RNNsearchDecoder, lambda: BilinearScore(6, 6), True, 2),
    "deep luong": (LuongDecoder, lambda: AdditiveScore(6, 6, 4), True, 3),
}


def model(kind="additive", source_vocab=ENGLISH, target_vocab=GERMAN):
    torch.manual_seed(1)
    decoder, score, two_way, n_layers = KINDS[kind]
    encoder = Encoder(source_vocab, 6, two_way=two_way, n_layers=n_layers)
    return Seq2Seq(encoder, decoder(target_vocab, 6, score(), n_layers=n_layers)).eval()


def watched(m, source, target) -> tuple[torch.Tensor, Any]:
    """Logits, and weights `[batch target source]` or None where nothing is attended."""
    if m.decoder.attention is None:
        return m(source, target), None
    with recorded(m) as weights:
        logits = m(source, target)
    return logits, weights["decoder.attention"]


def test_gru_cell_equals_torch():
    torch.manual_seed(0)
    reference = nn.GRUCell(3, 5)
    cell = GRUCell(3, 5)
    cell.load_state_dict(reference.state_dict())
    x, h = torch.randn(4, 3), torch.randn(4, 5)
    assert (cell(x, h) - reference(x, h)).abs().max() < 1e-6


def test_gru_equals_torch_forward_and_backward():
    torch.manual_seed(0)
    reference = nn.GRU(3, 5, batch_first=True)
    gru = GRU(3, 5).load_torch(reference)
    x = torch.randn(4, 7, 3)
    ours, theirs = gru(x), reference(x)[0]
    assert (ours - theirs).abs().max() < 1e-6
    ours.square().sum().backward()
    theirs.square().sum().backward()
    ours, theirs = gru.cell.get_parameter("weight_hh").grad, reference.weight_hh_l0.grad
    assert isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor)
    assert (ours - theirs).abs().max() < 1e-5


def test_two_grus_equal_a_two_way_one_of_torch():
    torch.manual_seed(0)
    reference = nn.GRU(3, 5, bidirectional=True, batch_first=True)
    forward = GRU(3, 5).load_torch(reference)
    backward = GRU(3, 5).load_torch(reference, backward=True)
    x = torch.randn(4, 7, 3)
    expected = reference(x)[0]
    assert (forward(x) - expected[..., :5]).abs().max() < 1e-6
    assert (backward(x.flip(1)).flip(1) - expected[..., 5:]).abs().max() < 1e-6


def test_original_gru_cell_against_its_equations_as_loops():
    torch.manual_seed(0)
    cell = GRUCell(2, 3, reset="before")
    x, h = torch.randn(1, 2), torch.randn(1, 3)
    w, u = (m.detach().reshape(3, 3, -1).tolist() for m in (cell.weight_ih, cell.weight_hh))
    b, c = (m.detach().reshape(3, 3).tolist() for m in (cell.bias_ih, cell.bias_hh))

    def line(gate, i, state):
        first = sum(w[gate][i][k] * x[0, k].item() for k in range(2)) + b[gate][i]
        return first + sum(u[gate][i][k] * state[k] for k in range(3)) + c[gate][i]

    sigmoid = lambda v: 1 / (1 + torch.tensor(-v).exp().item())  # noqa: E731
    h0 = h[0].tolist()
    r = [sigmoid(line(0, i, h0)) for i in range(3)]
    z = [sigmoid(line(1, i, h0)) for i in range(3)]
    n = [torch.tensor(line(2, i, [r[k] * h0[k] for k in range(3)])).tanh().item() for i in range(3)]
    expected = torch.tensor([(1 - z[i]) * n[i] + z[i] * h0[i] for i in range(3)])
    assert (cell(x, h)[0] - expected).abs().max() < 1e-6
    cell.reset = "after"
    assert (cell(x, h)[0] - expected).abs().max() > 1e-3


def words(row):
    return int((SOURCE[row] != PAD).sum())


@pytest.mark.parametrize("kind", ["additive", "deep"])
def test_encoder_ignores_padding(kind):
    encoder = model(kind).encoder
    together = encoder(SOURCE)
    for row in range(4):
        n = words(row)
        alone = encoder(SOURCE[row : row + 1, :n])
        assert (together.states[row, :n] - alone.states[0]).abs().max() < 1e-6
        assert (together.states[row, n:] == 0).all()
        assert (together.last[row] - alone.last[0]).abs().max() < 1e-6
    wide = encoder(torch.cat([SOURCE, torch.full((4, 2), PAD)], dim=1))
    assert wide.states[:, :5].equal(together.states)
    assert wide.last.equal(together.last)


def test_the_last_state_of_a_one_way_encoder_is_that_of_the_last_word():
    memory = model().encoder(SOURCE)
    for row in range(4):
        assert memory.last[row, -1].equal(memory.states[row, words(row) - 1])


def test_two_way_stacked_encoder_against_our_own_gru_in_both_directions():
    encoder: Any = model("deep").encoder
    memory = encoder(SOURCE)

    def direction(layer, suffix, x):
        gru = GRU(6, 3)
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = {n: getattr(encoder.rnn, f"{n}_l{layer}{suffix}") for n in names}
        gru.cell.load_state_dict(weights)
        return gru(x)

    for row in range(4):
        x = encoder.embedding(SOURCE[row : row + 1, : words(row)])
        for layer in range(3):
            forward = direction(layer, "", x)
            backward = direction(layer, "_reverse", x.flip(1)).flip(1)
            last = torch.cat([forward[0, -1], backward[0, 0]])
            assert (memory.last[row, layer] - last).abs().max() < 1e-6
            x = torch.cat([forward, backward], -1)
        assert (memory.states[row, : words(row)] - x[0]).abs().max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_of_only_padding_gives_zeros(kind):
    m = model(kind)
    memory = m.encoder(torch.tensor([[PAD, PAD], [4, 5]]))
    assert (memory.states[0] == 0).all()
    assert (memory.last[0] == 0).all()
    logits, weights = watched(m, torch.tensor([[PAD, PAD]]), TARGET[:1, :3])
    assert logits.isfinite().all()
    assert weights is None or (weights == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing_and_is_never_attended(kind):
    m = model(kind)
    wide = torch.cat([SOURCE, torch.full((4, 2), PAD)], dim=1)
    narrow, widened = watched(m, SOURCE, TARGET), watched(m, wide, TARGET)
    if kind in ("plain", "deep plain", "last"):  # no sum whose order the padding could change
        assert narrow[0].equal(widened[0])
    assert (narrow[0] - widened[0]).abs().max() < 1e-6
    assert m.translate(SOURCE, 6).tokens.equal(m.translate(wide, 6).tokens)
    if kind not in ("plain", "deep plain"):
        assert (widened[1] > 0).any(1).logical_and(wide == PAD).sum() == 0
        assert (narrow[1] - widened[1][..., :5]).abs().max() < 1e-6


def test_attending_decoder_against_its_equations():
    m = model("additive")
    memory = m.encoder(SOURCE)
    logits, weights = watched(m, SOURCE, TARGET)
    decoder, state = m.decoder, memory.last[:, -1]
    score = decoder.attention.score
    w1, w2, v = score.w1, score.w2, score.v
    for t in range(TARGET.shape[1]):
        for b in range(4):
            n = int(memory.mask[b].sum())
            hidden = [torch.tanh(w1(h) + w2(state[b])) for h in memory.states[b, :n]]
            scores = torch.cat([v(row) for row in hidden])
            a = scores.exp() / scores.exp().sum()
            assert (weights[b, t, :n] - a).abs().max() < 1e-6
            assert (weights[b, t, n:] == 0).all()
        context = (weights[:, t, :, None] * memory.states).sum(1)
        state = decoder.cells[0](torch.cat([decoder.embedding(TARGET[:, t]), context], -1), state)
        assert (logits[:, t] - decoder.out(state)).abs().max() < 1e-6


def test_luong_decoder_against_its_equations():
    m = model("luong")
    memory, d = m.encoder(SOURCE), m.decoder
    combine = d.get_parameter("combine.weight")
    logits, weights = watched(m, SOURCE, TARGET)
    state = memory.last[:, -1]
    for t in range(TARGET.shape[1]):
        state = d.cells[0](d.embedding(TARGET[:, t]), state)
        for b in range(4):
            states = memory.states[b, : words(b)]
            scores = torch.stack([(state[b] * h).sum() for h in states])
            a = scores.exp() / scores.exp().sum()
            context = (a[:, None] * states).sum(0)
            read = torch.tanh(combine @ torch.cat([context, state[b]]))
            assert (weights[b, t, : words(b)] - a).abs().max() < 1e-6
            assert (logits[b, t] - (d.out.weight @ read + d.out.bias)).abs().max() < 1e-6


@pytest.mark.parametrize("kind", ["rnnsearch", "deep rnnsearch"])
def test_rnnsearch_against_its_equations_sentence_by_sentence(kind):
    m = model(kind)
    d = m.decoder
    logits, weights = watched(m, SOURCE, TARGET)
    w_s, w_y, w_c = d.deep.weight.chunk(3, dim=1)  # [12, 6] each: U, V, C
    for b in range(4):
        memory = m.encoder(SOURCE[b : b + 1, : words(b)])
        states = memory.states[0]
        backward = memory.last[0, :, 3:]  # of each layer, at the first word
        s = [torch.tanh(d.begin.weight @ row) for row in backward]
        for t, token in enumerate(TARGET[b]):
            y = d.embedding.weight[token]
            scores = d.attention.score(s[-1][None], d.attention.score.prepare(states[None]))[0]
            a = scores.exp() / scores.exp().sum()
            c = torch.stack([a[j] * states[j] for j in range(words(b))]).sum(0)
            u = w_s @ s[-1] + w_y @ y + w_c @ c + d.deep.bias
            maxout = torch.stack([max(u[2 * k], u[2 * k + 1]) for k in range(6)])
            assert (weights[b, t, : words(b)] - a).abs().max() < 1e-6
            assert (logits[b, t] - d.out(maxout)).abs().max() < 1e-6
            x = torch.cat([y, c])
            for layer, cell in enumerate(d.cells):
                x = s[layer] = cell(x[None], s[layer][None])[0]


def test_rnnsearch_starts_from_the_backward_states_alone():
    m = model("rnnsearch")
    memory = m.encoder(SOURCE)
    assert memory.last[:, -1, 3:].equal(memory.states[:, 0, 3:])  # read from the end to word 1
    for half, same in [(slice(0, 3), True), (slice(3, 6), False)]:
        last = memory.last.clone()
        last[..., half] += 1
        before, after = (m.decoder(TARGET, memory._replace(last=v)) for v in (memory.last, last))
        assert before.equal(after) == same


@pytest.mark.parametrize("kind", ["deep", "deep luong"])
def test_stacked_decoders_against_their_equations(kind):
    m = model(kind)
    memory, d = m.encoder(SOURCE), m.decoder
    logits, weights = watched(m, SOURCE, TARGET)
    states, combine = list(memory.last.unbind(1)), getattr(d, "combine", None)
    score = d.attention.score

    def look(query):
        scores = score(query, score.prepare(memory.states)).masked_fill(~memory.mask, -torch.inf)
        return scores.softmax(-1)

    for t in range(TARGET.shape[1]):
        x = d.embedding(TARGET[:, t])
        if kind == "deep":
            row = look(states[-1])
            x = torch.cat([x, (row[:, :, None] * memory.states).sum(1)], -1)
        for layer, cell in enumerate(d.cells):
            x = states[layer] = cell(x, states[layer])
        if combine:
            row = look(x)
            context = (row[:, :, None] * memory.states).sum(1)
            x = torch.tanh(combine(torch.cat([context, x], -1)))
        assert (weights[:, t] - row).abs().max() < 1e-6
        assert (logits[:, t] - d.out(x)).abs().max() < 1e-6


def test_last_key_score_is_a_kronecker_delta():
    _, weights = watched(model("last"), SOURCE, TARGET)
    expected = torch.zeros(4, 5)
    expected[0, 4] = expected[1, 1] = expected[2, 2] = expected[3, 0] = 1
    assert weights.equal(expected[:, None].expand(4, TARGET.shape[1], 5))


def test_plain_decoder_is_the_delta_decoder_with_zero_context_weights():
    delta, plain = model("last"), model("plain")
    with torch.no_grad():
        delta.decoder.get_parameter("cells.0.weight_ih")[:, 6:] = 0
    plain.encoder.load_state_dict(delta.encoder.state_dict())
    weights = delta.decoder.state_dict()
    weights["cells.0.weight_ih"] = weights["cells.0.weight_ih"][:, :6]
    plain.decoder.load_state_dict(weights)
    assert (delta(SOURCE, TARGET) - plain(SOURCE, TARGET)).abs().max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_decoder_is_causal(kind):
    m = model(kind)
    changed = TARGET.clone()
    changed[:, 3] = 9
    before, after = m(SOURCE, TARGET), m(SOURCE, changed)
    assert before[:, :3].equal(after[:, :3])
    assert not before[:, 3:].equal(after[:, 3:])


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_decoding_takes_the_likeliest_token_given_its_own_words(kind):
    m = model(kind)
    found = m.translate(SOURCE, max_len=8)
    fed = torch.cat([torch.full((4, 1), BOS), found.tokens[:, :-1]], dim=1)
    logits, live = m(SOURCE, fed), found.tokens != PAD
    assert (logits[..., EOS:].argmax(-1) + EOS)[live].equal(found.tokens[live])
    logp = logits.log_softmax(-1).gather(-1, found.tokens[..., None])[..., 0]
    assert ((logp * live).sum(1) - found.scores).abs().max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [(7,), (1,) * 7, (2, 1, 4)])
def test_steps_of_any_length_are_teacher_forcing(kind, cuts):
    m = model(kind)
    logits, state, done = m(SOURCE, TARGET), m.decoder.start(m.read(SOURCE)), 0
    for n in cuts:
        before = state[0].clone()
        step, after = m.decoder.step(TARGET[:, done : done + n], state)
        assert state[0].equal(before)
        done, state = done + n, after
        assert (step - logits[:, done - 1]).abs().max() < 1e-6


@pytest.mark.parametrize("token", [PAD, BOS])
def test_greedy_decoding_never_chooses_padding_or_start(token):
    m = model()
    with torch.no_grad():
        m.decoder.out.bias[token] = 100
    assert (m.translate(SOURCE, max_len=4).tokens[:, 0] >= EOS).all()


def test_greedy_decoding_pads_after_the_end_token_and_needs_no_gradient():
    found = model().translate(SOURCE, max_len=4)
    assert found.tokens[:2].tolist() == [[EOS, PAD, PAD, PAD]] * 2
    assert (found.tokens[2] > EOS).all()  # while the third sentence goes on
    assert not found.scores.requires_grad


def test_a_new_cell_starts_within_pytorch_s_bound():
    cell = GRUCell(3, 25)
    for parameter in cell.parameters():
        assert 0.15 < parameter.abs().max() <= 0.2


def test_greedy_decoding_stops_at_the_end_token():
    m = model()
    with torch.no_grad():
        m.decoder.out.bias[EOS] = 100
    assert m.translate(SOURCE, max_len=8).tokens.tolist() == [[EOS]] * 4


def test_loss_is_the_mean_negative_log_probability_of_the_words():
    m = model()
    log_p = m(SOURCE, TARGET[:, :-1]).log_softmax(-1)
    words = [(b, t) for b in range(4) for t in range(6) if TARGET[b, t + 1] != PAD]
    wanted = [-log_p[b, t, TARGET[b, t + 1]] for b, t in words]
    assert abs(m.loss(Pairs(SOURCE, TARGET)) - torch.stack(wanted).mean()) < 1e-6


@torch.no_grad()
def move(ours, theirs, source_ids, target_ids):
    """Give `ours` the weights of `theirs`, whose token i of source and target is ours `ids[i]`."""
    state = theirs.state_dict()
    same = {n: value for n, value in state.items() if "embedding" not in n and ".out." not in n}
    ours.load_state_dict(same, strict=False)
    pairs = [(ours.encoder.embedding, theirs.encoder.embedding, source_ids),
             (ours.decoder.embedding, theirs.decoder.embedding, target_ids),
             (ours.decoder.out, theirs.decoder.out, target_ids)]  # fmt: skip
    for mine, other, ids in pairs:
        mine.weight[ids] = other.weight
    ours.decoder.out.bias[target_ids] = theirs.decoder.out.bias


@pytest.mark.parametrize("kind", ["plain", "additive", "deep luong"])
def test_other_ids_change_nothing_but_the_ids(kind):
    """The same words in another order, the special ones anywhere among them."""
    theirs, tokens = model(kind), [list(v.tokens) for v in (ENGLISH, GERMAN)]
    orders = [[*range(3, n, 2), 0, *range(4, n, 2), 2, 1] for n in map(len, tokens)]
    vocabs = [Vocabulary([t[i] for i in order]) for t, order in zip(tokens, orders, strict=True)]
    assert [(v.pad, v.bos, v.eos) for v in vocabs] == [(4, 9, 8), (4, 10, 9)]
    source_ids, target_ids = (
        torch.tensor(v.encode(t)) for v, t in zip(vocabs, tokens, strict=True)
    )
    ours = model(kind, *vocabs)
    move(ours, theirs, source_ids, target_ids)
    source, target = source_ids[SOURCE], target_ids[TARGET]
    assert (ours(source, target)[..., target_ids] - theirs(SOURCE, TARGET)).abs().max() < 1e-6
    assert abs(ours.loss(Pairs(source, target)) - theirs.loss(Pairs(SOURCE, TARGET))) < 1e-6
    for beam in (1, 3):
        mine = ours.translate(source, 8, beam=beam)
        expected = theirs.translate(SOURCE, 8, beam=beam)
        assert mine.tokens.equal(target_ids[expected.tokens])
        assert (mine.scores - expected.scores).abs().max() < 1e-5


def test_one_token_may_pad_begin_and_end():
    """As in GPT-2's vocabulary: the start's embedding, the end's row of the output."""
    theirs = model()
    with torch.no_grad():
        theirs.decoder.out.bias[[PAD, BOS]] = -1e9  # have no probability
    one = Vocabulary([*"ABCD", "<end>", *"EFGH"], pad="<end>", bos="<end>", eos="<end>")
    ours = model("additive", ENGLISH, one)
    ids = torch.tensor([one.pad, one.bos, one.eos, *one.encode("ABCDEFGH")])
    move(ours, theirs, torch.arange(10), ids)
    with torch.no_grad():
        ours.decoder.embedding.weight[one.bos] = theirs.decoder.embedding.weight[BOS]
        ours.decoder.out.weight[one.eos] = theirs.decoder.out.weight[EOS]
        ours.decoder.out.bias[one.eos] = theirs.decoder.out.bias[EOS]
    lengths = set()
    for options in ({}, {"beam": 3}, {"beam": 3, "length_penalty": 2.0}):
        mine, expected = (m.translate(SOURCE, 8, **options) for m in (ours, theirs))
        assert mine.tokens.equal(ids[expected.tokens])
        assert (mine.scores - expected.scores).abs().max() < 1e-5
        lengths |= set((expected.tokens != PAD).sum(1).tolist())
    assert len(lengths) > 1
    begun, words = TARGET[:, :2], slice(3, None)
    logits = ours(SOURCE, ids[begun])
    assert (logits[..., ids[words]] - theirs(SOURCE, begun)[..., words]).abs().max() < 1e-6


def headed(n_heads):
    torch.manual_seed(1)
    return Seq2Seq(Encoder(ENGLISH, 6, two_way=True), MultiHeadDecoder(GERMAN, 6, n_heads)).eval()


def test_one_head_with_maps_that_change_nothing_is_the_scaled_dot_product():
    torch.manual_seed(2)
    ours = headed(1)
    theirs = Seq2Seq(ours.encoder, Decoder(GERMAN, 6, ScaledDotScore())).eval()
    shared = ours.decoder.state_dict()
    theirs.decoder.load_state_dict({k: v for k, v in shared.items() if not k.startswith("heads")})
    with torch.no_grad():
        for part in (ours.decoder.heads.q, ours.decoder.heads.k, ours.decoder.heads.v):
            part.weight.copy_(torch.eye(6))
            part.bias.zero_()
        ours.decoder.heads.out.weight.copy_(torch.eye(6))
        ours.decoder.heads.out.bias.zero_()
    with recorded(ours) as weights, recorded(theirs) as expected:
        assert (ours(SOURCE, TARGET) - theirs(SOURCE, TARGET)).abs().max() < 1e-6
    found = weights["decoder.heads"][:, 0]
    assert (found - expected["decoder.attention"]).abs().max() < 1e-6


@pytest.mark.parametrize("n_heads", [1, 2, 3])
def test_several_heads_read_each_sentence_by_itself(n_heads):
    m = headed(n_heads)
    with recorded(m) as weights:
        together = m(SOURCE, TARGET)
    found = weights["decoder.heads"]
    assert found.shape == (4, n_heads, TARGET.shape[1], SOURCE.shape[1])
    assert (found.sum(-1) - 1).abs().max() < 1e-6
    for row in range(4):
        n = words(row)
        assert (found[row, :, :, n:] == 0).all()
        alone = m(SOURCE[row : row + 1, :n], TARGET[row : row + 1])
        assert (alone[0] - together[row]).abs().max() < 1e-5
    state = m.decoder.start(m.read(SOURCE))
    for t in range(TARGET.shape[1]):
        logits, state = m.decoder.step(TARGET[:, t : t + 1], state)
        assert (logits - together[:, t]).abs().max() < 1e-5
    same = sum(p.numel() for p in headed(1).parameters())
    assert sum(p.numel() for p in m.parameters()) == same
