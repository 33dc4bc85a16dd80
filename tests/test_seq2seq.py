from typing import Any

import pytest
import torch
from torch import nn

from attnbook.attention import AdditiveScore, BilinearScore, DotScore, LastKeyScore
from attnbook.data import BOS, EOS, PAD, Batch
from attnbook.seq2seq import GRU, Decoder, Encoder, GRUCell, LuongDecoder, Seq2Seq

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
    "deep plain": (Decoder, lambda: None, False, 2),
    "deep": (Decoder, lambda: AdditiveScore(6, 6, 4), True, 3),
    "deep luong": (LuongDecoder, lambda: AdditiveScore(6, 6, 4), True, 3),
}


def model(kind="additive", source_vocab=10, target_vocab=11, d_model=6):
    torch.manual_seed(1)
    decoder, score, two_way, n_layers = KINDS[kind]
    encoder = Encoder(source_vocab, d_model, two_way=two_way, n_layers=n_layers)
    return Seq2Seq(encoder, decoder(target_vocab, d_model, score(), n_layers=n_layers)).eval()


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


def test_unknown_reset():
    with pytest.raises(ValueError, match=r"reset must be .* got 'middle'"):
        GRUCell(2, 3, reset="middle")


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
        assert (together.last[:, row] - alone.last[:, 0]).abs().max() < 1e-6
    wide = encoder(torch.cat([SOURCE, torch.full((4, 2), PAD)], dim=1))
    assert wide.states[:, :5].equal(together.states)
    assert wide.last.equal(together.last)


def test_the_last_state_of_a_one_way_encoder_is_that_of_the_last_word():
    memory = model().encoder(SOURCE)
    for row in range(4):
        assert memory.last[-1, row].equal(memory.states[row, words(row) - 1])


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
            assert (memory.last[layer, row] - last).abs().max() < 1e-6
            x = torch.cat([forward, backward], -1)
        assert (memory.states[row, : words(row)] - x[0]).abs().max() < 1e-6


def test_a_two_way_encoder_needs_an_even_size():
    with pytest.raises(ValueError, match="d_model must be even for two directions, got 7"):
        Encoder(10, 7, two_way=True)


def test_padding_before_a_word_is_an_error():
    with pytest.raises(ValueError, match="source must have its padding at the end"):
        model().encoder(torch.tensor([[4, 5, 6], [PAD, 4, 5]]))


def test_encoder_and_decoder_must_fit():
    with pytest.raises(ValueError, match=r"decoder must .* 'n_layers': 1}, got .*'n_layers': 2}"):
        Seq2Seq(Encoder(10, 6), Decoder(11, 6, n_layers=2))
    with pytest.raises(ValueError, match=r"decoder must .* \{'d_model': 6, .* got \{'d_model': 4,"):
        Seq2Seq(Encoder(10, 6), Decoder(11, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_of_only_padding_gives_zeros(kind):
    m = model(kind)
    memory = m.encoder(torch.tensor([[PAD, PAD], [4, 5]]))
    assert (memory.states[0] == 0).all()
    assert (memory.last[:, 0] == 0).all()
    logits, weights = m(torch.tensor([[PAD, PAD]]), TARGET[:1, :3])
    assert logits.isfinite().all()
    assert weights is None or (weights == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing_and_is_never_attended(kind):
    m = model(kind)
    wide = torch.cat([SOURCE, torch.full((4, 2), PAD)], dim=1)
    narrow, widened = m(SOURCE, TARGET), m(wide, TARGET)
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
    logits, weights = m(SOURCE, TARGET)
    decoder, state = m.decoder, memory.last[-1]
    assert isinstance(decoder.score, AdditiveScore)
    w1, w2, v = decoder.score.w1, decoder.score.w2, decoder.score.v
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
    logits, weights = m(SOURCE, TARGET)
    state = memory.last[-1]
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


@pytest.mark.parametrize("kind", ["deep", "deep luong"])
def test_stacked_decoders_against_their_equations(kind):
    m = model(kind)
    memory, d = m.encoder(SOURCE), m.decoder
    logits, weights = m(SOURCE, TARGET)
    states, combine = list(memory.last), getattr(d, "combine", None)
    score = d.get_submodule("score")
    assert isinstance(score, AdditiveScore)

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
    _, weights = model("last")(SOURCE, TARGET)
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
    assert (delta(SOURCE, TARGET)[0] - plain(SOURCE, TARGET)[0]).abs().max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_decoder_is_causal(kind):
    m = model(kind)
    changed = TARGET.clone()
    changed[:, 3] = 9
    before, after = m(SOURCE, TARGET)[0], m(SOURCE, changed)[0]
    assert before[:, :3].equal(after[:, :3])
    assert not before[:, 3:].equal(after[:, 3:])


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_decoding_takes_the_likeliest_token_given_its_own_words(kind):
    m = model(kind)
    found = m.translate(SOURCE, max_len=8)
    fed = torch.cat([torch.full((4, 1), BOS), found.tokens[:, :-1]], dim=1)
    logits, weights = m(SOURCE, fed)
    live = found.tokens != PAD
    assert (logits[..., EOS:].argmax(-1) + EOS)[live].equal(found.tokens[live])
    assert (logits - found.logits)[live].abs().max() < 1e-5
    assert (weights is None) == (found.weights is None)
    if weights is not None:
        assert (weights - found.weights)[live].abs().max() < 1e-5


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
    assert not found.logits.requires_grad


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
    log_p = m(SOURCE, TARGET[:, :-1])[0].log_softmax(-1)
    words = [(b, t) for b in range(4) for t in range(6) if TARGET[b, t + 1] != PAD]
    wanted = [-log_p[b, t, TARGET[b, t + 1]] for b, t in words]
    assert abs(m.loss(Batch(SOURCE, TARGET)) - torch.stack(wanted).mean()) < 1e-6
