// The laboratory's runs, and the one in progress, each of whose seeds is trained in its own worker.
import ENGINE from "../engine/laboratory.js" with { type: "text" };
import { start } from "../engine/client.js";
import { rival, settle } from "./ledger.js";

const SLICE = 80; // ms of training between two answers of a worker

const makeStudent = (seed) =>
  ({ client: start(ENGINE), busy: false, record: { seed, done: 0, losses: [], tests: [] } });

export class Training {
  // `changed` is called after each answer of a worker; `learnt` when the first model has been trained further; `tested`
  // with a run that has new tests to store; `ended` with the value of `active` when its run is over, and whether it was
  // stopped.
  constructor(runs, { changed, learnt, tested, ended }) {
    Object.assign(this, { runs, changed, learnt, tested, ended });
    this.active = null; // the run in progress, or the last one; its first model stays and can be asked
  }

  get running() {
    return Boolean(this.active && !this.active.over);
  }

  // Makes a run with `count` seeds, paused. `given` holds what tasks need; `takeBet` returns the reader's bet on it.
  async begin({ id, number, count, settings, given, takeBet }) {
    this.close();
    const students = Array.from({ length: count }, (_, n) => makeStudent(settings.seed + n));
    const other = rival(this.runs, settings), bet = other ? takeBet() : null;
    const seeds = students.map(({ record }) => record);
    const run = { id, number, settings, sizes: null, seeds, bet, beside: other?.number ?? null };
    const mine = { run, students, paused: true, over: false, ms: 0, error: "" };
    this.active = mine;
    this.runs.push(run);
    try {
      const made = students.map(({ client, record: { seed } }) =>
        client.call("begin", { ...settings, ...given, seed }));
      run.sizes = (await Promise.all(made))[0];
    } catch (error) {
      this.fail(mine, error);
    }
    this.changed();
  }

  // Trains every seed for one step.
  async step() {
    const mine = this.active;
    mine.paused = true;
    await Promise.all(mine.students.map((student) => this.teach(student, mine, { steps: 1 })));
    if (mine.students.every((student) => this.isTaught(student, mine)) && mine === this.active) this.finish();
  }

  pause(paused) {
    this.active.paused = paused;
    if (!paused) this.resume();
    this.changed();
  }
  resume() {
    for (const student of this.active.students) this.follow(student, this.active);
  }
  // Continues a run that was not paused, when the page becomes visible again.
  wake() {
    if (this.running && !this.active.paused) this.resume();
  }

  isTaught({ record: { done } }, { run }) {
    return done >= run.settings.steps;
  }

  // Trains one seed, slice by slice, to the end of its run or until the run is paused.
  async follow(student, mine) {
    if (student.busy) return;
    student.busy = true;
    const goes = () => mine === this.active && !mine.over && !mine.paused && !document.hidden;
    while (goes() && !this.isTaught(student, mine)) {
      await this.teach(student, mine, { ms: SLICE, steps: mine.run.settings.steps - student.record.done });
      if (student === mine.students[0]) this.learnt();
    }
    student.busy = false;
    if (mine === this.active && mine.students.every((each) => this.isTaught(each, mine))) this.finish();
  }

  async teach({ client, record }, mine, given) {
    const began = performance.now();
    try {
      const { losses, tests } = await client.call("train", given);
      record.losses.push(...losses);
      record.tests.push(...tests);
      record.done += losses.length;
      if (record === mine.run.seeds[0]) mine.ms += performance.now() - began;
      if (tests.length && !mine.over) this.tested(mine.run);
    } catch (error) {
      this.fail(mine, error);
    }
    this.changed();
  }

  // Ends the run; its comparison with the other one settles the bet. A run without a single step is dropped.
  finish(stopped = false) {
    if (!this.running) return;
    const { active } = this, { run, students } = active;
    active.over = true;
    for (const { client } of students.slice(1)) client.stop();
    if (run.seeds.some(({ done }) => done)) active.verdict = settle(run, this.runs);
    else this.drop(active);
    this.ended(active, stopped);
  }
  drop(mine) {
    mine.dropped = true;
    if (this.runs.includes(mine.run)) this.runs.splice(this.runs.indexOf(mine.run), 1);
  }

  fail(mine, error) {
    if (mine !== this.active || mine.over) return;
    mine.error = error.message;
    this.finish(true);
  }

  close() {
    for (const { client } of this.active?.students ?? []) client.stop();
    this.active = null;
  }

  // The first model's answer to a text; undefined if another run has begun meanwhile.
  async look(text) {
    const mine = this.active, seen = await mine.students[0].client.newest("look", { text }).catch(() => undefined);
    return mine === this.active ? seen : undefined;
  }
}
