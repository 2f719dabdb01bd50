/**
 * Imported into the gateway for the bench of its memory, with `--expose-gc`: what is still there after
 * a collection is what it keeps.
 */
process.on('SIGUSR2', () => {
  globalThis.gc?.()
  globalThis.gc?.()
})
