/**
 * Imported into the gateway by the memory bench, with `--expose-gc`: collects garbage on a signal, so that the heap
 * contains only what the gateway retains.
 */
process.on('SIGUSR2', () => {
  globalThis.gc?.()
  globalThis.gc?.()
})
