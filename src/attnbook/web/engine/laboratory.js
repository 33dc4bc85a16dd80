// The laboratory's worker. A run continues only while the page asks for more, so it stops when the page does.
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
