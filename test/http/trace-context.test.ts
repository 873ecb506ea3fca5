/** The trace id that joins a call of the service with the trace of its caller. */
import t from 'tap';
import { traceIdOf } from '../../src/service/http/server/trace-context.js';

const NEW = 'ab'.repeat(16);
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const random = (length: number) => new Uint8Array(length).fill(0xab);
const idOf = (header: string | undefined) => traceIdOf(header, random);

t.test('a valid traceparent gives its trace id, also in a later version', async (t) => {
  for (const header of [
    `00-${TRACE}-00f067aa0ba902b7-01`,
    `00-${TRACE}-00f067aa0ba902b7-ff`,
    `01-${TRACE}-00f067aa0ba902b7-01`,
    `cc-${TRACE}-00f067aa0ba902b7-01-what the future brings`,
  ])
    t.equal(idOf(header), TRACE, header);
});

t.test('any other traceparent gives a new trace id', async (t) => {
  for (const header of [
    undefined,
    '',
    TRACE,
    `00-${TRACE}-00f067aa0ba902b7`,
    `00-${TRACE}-00f067aa0ba902b7-01-`,
    `00-${TRACE}-00f067aa0ba902b7-01-more`,
    `00-${TRACE}-00f067aa0ba902b7-01, 00-${TRACE}-00f067aa0ba902b7-01`,
    `ff-${TRACE}-00f067aa0ba902b7-01`,
    `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    ` 00-${TRACE}-00f067aa0ba902b7-01`,
    `01-${TRACE}-00f067aa0ba902b7-01-\u007f`,
    `01-${TRACE}-00f067aa0ba902b7-01-${'x'.repeat(500)}`,
  ])
    t.equal(idOf(header), NEW, String(header));
});
