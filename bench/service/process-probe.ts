/** Loaded with `--import` into the service: reports its CPU time and memory, all threads included. */
import { answerCalls } from './child.js';
import { probe } from './process-use.js';

answerCalls(probe);
// The service knows nothing of this channel and decides itself when the process ends.
process.channel?.unref();
