import type { AudioEngine } from '../ports/audio-engine.js';
import { completeOptions, type EngineOptions } from './engine-options.js';
import { NativeEngine } from './native-engine.js';
import { WasmEngine } from './wasm-engine.js';

/**
 * The audio engine of the chosen kind, not yet started.
 * @throws RangeError for an option out of its range
 */
export function createAudioEngine(options: EngineOptions): AudioEngine {
  const complete = completeOptions(options);
  return complete.kind === 'native' ? new NativeEngine(complete) : new WasmEngine(complete);
}
