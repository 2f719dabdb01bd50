/**
 * Changes of jobs, as published by scripts. All watchers share one subscription, open while there
 * are any.
 */
import type { JobChange, JobWatcher } from '../../queue-port.js'
import type { Subscribe, Subscription } from '../connection/subscription.js'

export function createJobWatchers(channel: string, subscribe: Subscribe) {
  const watchers = new Set<JobWatcher>()
  let subscription: Subscription | undefined

  return (watcher: JobWatcher): (() => void) => {
    watchers.add(watcher)
    subscription ??= subscribe(channel, {
      onMessage(text) {
        for (const change of readChanges(text)) for (const each of watchers) each.onChange(change)
      },
      onSubscribed() {
        for (const each of watchers) each.onGap()
      },
    })
    return () => {
      watchers.delete(watcher)
      if (watchers.size > 0) return
      subscription?.close()
      subscription = undefined
    }
  }
}

/** Other messages are ignored. */
function readChanges(text: string): JobChange[] {
  try {
    const { kind, guard, queue, ids } = JSON.parse(text)
    if (kind !== 'progress' && kind !== 'cancel') return []
    return (ids as string[]).map((id) => ({ kind, guard, queue, id }))
  } catch {
    return []
  }
}
