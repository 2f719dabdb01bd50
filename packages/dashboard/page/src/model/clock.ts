/** The current time for countdowns. It stops while the page is paused. */
import { signal } from '@preact/signals'
import { pausedAt, serverNow } from './live'

const STEP_MS = 250

export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = pausedAt.peek() ?? serverNow()
  }, STEP_MS)
}
