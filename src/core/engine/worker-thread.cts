// Entry of the pool's threads. CommonJS, because the pool requires it: Node 20 aborts the whole process when
// a thread is terminated while `require` loads an ES module (`v8::Module::IsGraphAsync`), and only ends the
// thread while `import` does.
export = { hash: import('./worker.js').then(({ hash }) => hash) };
