// The laboratory's runs, and the one under way, each of whose seeds learns in a worker of its own.
import ENGINE from "../engine/laboratory.js" with { type: "text" };
import { start } from "../engine/client.js";
import { rival, settle } from "./ledger.js";

const SLICE = 80; // ms of training between two answers of a worker

const makeStudent = (seed) =>
  ({ client: start(ENGINE), busy: false, record: { seed, done: 0, losses: [], tests: [] } });

export class Training {
  // `changed` is called after each answer of a worker; `learnt` when the first model has learnt more; `tested` with a
  // run that has something new to keep; `ended` with what was under way when that is over, and whether it was stopped.
  constructor(runs, { changed, learnt, tested, ended }) {
    Object.assign(this, { runs, changed, learnt, tested, ended });
    this.active = null; // what is under way, or was last; its first model stays, and can be asked
  }

  get running() {
    return Boolean(this.active && !this.active.over);
  }

  // A run with `count` seeds, which waits. `given` is what tasks need; `takeBet` gives the reader's bet on it.
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

  // One step of every seed.
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
  // A page that is seen again goes on with what was not paused.
  wake() {
    if (this.running && !this.active.paused) this.resume();
  }

  isTaught({ record: { done } }, { run }) {
    return done >= run.settings.steps;
  }

  // Teaches one seed, slice by slice, to the end of its run or until the run is paused.
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

  // The run is over, and how it went beside the other one settles its bet. A run without a step is forgotten.
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

  // What the first model answers to a text; nothing, if another run has begun meanwhile.
  async look(text) {
    const mine = this.active, seen = await mine.students[0].client.newest("look", { text }).catch(() => undefined);
    return mine === this.active ? seen : undefined;
  }
}
