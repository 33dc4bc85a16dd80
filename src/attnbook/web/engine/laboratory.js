// The laboratory's worker. A run goes on only while it is asked for more, so that it stops when the page does.
import { begin } from "./lesson.js";
import { serve } from "./serve.js";

let lesson;
serve({
  begin(settings) {
    lesson = begin(settings);
    return lesson.sizes;
  },
  train: (given) => lesson.train(given),
  look: (given) => lesson.look(given),
});
