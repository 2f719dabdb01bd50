/** Preloaded into a gateway: SIGUSR2 collects garbage, so that the remaining heap is in use. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
process.on('SIGUSR2', () => {
  // Twice, because finalizers of the first collection release more.
  collect()
  collect()
})
