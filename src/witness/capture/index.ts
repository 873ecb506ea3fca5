/** A library for session agents that writes capture traces (docs/capture-trace.md). */
export {
  CHANNEL_SUPPORT,
  CHANNELS,
  type Channel,
  type ChannelSupport,
  DEVICE_ALGORITHMS,
  type DeviceAlgorithm,
  type DeviceId,
  EVENTS,
  type EventKind,
  TRACE_LIMITS,
  TRACE_VERSION,
  type TraceEvent,
  type TraceHeader,
} from '../domain/trace.js';
export { CaptureError, TraceFullError } from './capture-error.js';
export { createDeviceKey, DeviceKey, loadDeviceKey } from './device-key.js';
export {
  MAX_BUFFERED_BYTES,
  openTrace,
  type TraceOptions,
  type TraceSink,
  type TraceWriter,
} from './open-trace.js';
