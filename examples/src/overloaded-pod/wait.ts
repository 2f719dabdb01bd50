import type { Clock } from 'spillway/testing'

export function wait(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.schedule(delayMs, resolve)
  })
}
