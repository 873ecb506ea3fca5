/**
 * Loaded into every test process, after tap: tap would load itself into each process that a test starts, and
 * a service's own child, which has no environment and no permissions, could not bear it. What a test starts
 * is as it would be without tap.
 */
const onSpawn = globalThis[Symbol.for('process-on-spawn@*:singletonId')];
onSpawn?.listeners.push((child) => {
  child.env = Object.fromEntries(
    Object.entries(child.env).filter(
      ([name, value]) =>
        !name.startsWith('_TAPJS_') && !(name === 'NODE_OPTIONS' && value.includes('@tapjs')),
    ),
  );
});
