/**
 * The store of a command that operates gateways. The command prints problems of the store itself, so Node does not print
 * the store's warnings a second time.
 */
import type { RedisStore } from 'spillway/redis'
import type { RedisConfig } from '../../config/config.js'
import { openStore } from '../../shared-store.js'

let isSilent = false

export function openCommandStore(options: RedisConfig): RedisStore {
  silenceStoreWarnings()
  return openStore(options)
}

/** For the rest of the process: Node prints a warning some time after the store has reported it. */
function silenceStoreWarnings(): void {
  if (isSilent) return
  isSilent = true
  const listeners = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'SpillwayWarning') return
    for (const listener of listeners) listener(warning)
  })
}
