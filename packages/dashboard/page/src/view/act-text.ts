/** Title and effect of each operator action, shown before it is confirmed. */
import { countOf, formatCount, formatMs } from '../format'
import { fleet, hello } from '../model/live'
import type { Act } from '../wire'

export interface ActWords {
  title: string
  consequence: string
  button: string
  /** Calls are refused because of it. */
  harsh: boolean
}

export function wordsFor(act: Act): ActWords {
  switch (act.act) {
    case 'isolate':
      return {
        title: `Isolate ${act.guard}`,
        consequence: `Every call to ${target(act)} is refused with CIRCUIT_OPEN for ${formatMs(act.forMs)}, on ${everyPod()}. Running calls finish, and fallbacks answer if there are any. It ends after this time, or when an operator releases it.`,
        button: 'Isolate',
        harsh: true,
      }
    case 'release':
      return {
        title: `Release ${act.guard}`,
        consequence: `Ends the isolation of ${target(act)} that a dashboard started, on ${everyPod()}. Other isolations, and the breaker’s own state, stay.`,
        button: 'Release',
        harsh: false,
      }
    case 'reset':
      return {
        title: `Reset the breaker of ${act.guard}`,
        consequence: `Closes the breaker of ${target(act)} on ${everyPod()}, clears its counts, and ends all isolations. Calls reach the vendor at once; if it still fails, the breaker opens again.`,
        button: 'Reset',
        harsh: false,
      }
    case 'pause':
      return {
        title: `Pause ${act.guard}`,
        consequence: `No call to ${target(act)} starts for ${formatMs(act.forMs)}, on ${everyPod()}, as after a Retry-After of the vendor. Calls wait up to their queue timeout; calls that cannot wait are refused with VENDOR_LIMITED.`,
        button: 'Pause',
        harsh: true,
      }
    case 'limit':
      return {
        title: `Change a limit of ${act.guard}`,
        consequence: `The limit “${act.id}” is ${formatCount(act.limit)} instead of ${usualLimit(act)} for ${formatMs(act.forMs)}, on ${everyPod()}. Afterwards the usual limit applies. Spent units stay spent.`,
        button: 'Change the limit',
        harsh: true,
      }
    case 'release-key':
      return {
        title: `Release the key ${act.key} of ${act.guard}`,
        consequence: `Requests to ${act.guard} use the key ${act.key} again, on ${everyPod()}. If the vendor still rejects it, it is quarantined again.`,
        button: 'Release',
        harsh: false,
      }
    case 'drain':
      return {
        title: `Drain pod ${act.pod}`,
        consequence: `The pod ${act.pod} stops taking requests, finishes the running ones, and exits. ${rest(act.pod)} Your platform decides whether a new pod starts.`,
        button: 'Drain',
        harsh: true,
      }
    case 'replay':
      return {
        title: act.id === undefined ? `Retry all dead letters` : 'Retry a dead letter',
        consequence:
          act.id === undefined
            ? `Every dead letter of the job queue ${act.queue} returns to the end of the queue, with all its attempts.`
            : `The job ${act.id} returns to the end of the job queue ${act.queue}, with all its attempts.`,
        button: 'Retry',
        harsh: false,
      }
    case 'demo':
      return {
        title: 'Demonstration',
        consequence: demoWords(act),
        button: 'Apply',
        harsh: false,
      }
  }
}

function demoWords({ load, broken }: Act & { act: 'demo' }): string {
  if (load !== undefined) {
    return load
      ? 'Starts a built-in load on the mock vendor of this gateway.'
      : 'Stops the built-in load.'
  }
  return broken === true
    ? 'The mock vendor answers with errors until it is repaired.'
    : 'The mock vendor works again.'
}

function target({ guard, lane }: { guard: string; lane?: string }): string {
  return lane === undefined ? `${guard}, all lanes,` : `${guard}, lane ${lane},`
}

function everyPod(): string {
  const known = fleet.value
  if (known === undefined || known.store.status === 'memory') return 'this pod'
  const count = known.pods.length + known.podsLeftOut
  return count === 1 ? 'the only pod' : `all ${formatCount(count)} pods`
}

function rest(pod: string): string {
  const others = (fleet.value?.pods ?? []).filter((each) => each.pod !== pod && each.state === 'up')
  if (others.length === 0) return 'It is the only pod: no requests are answered afterwards.'
  return `${countOf(others.length, 'other pod')} ${others.length === 1 ? 'continues' : 'continue'}.`
}

function usualLimit({ guard, id }: { guard: string; id: string }): string {
  const card = hello.value?.guards.find(({ name }) => name === guard)
  const limit = card?.limits?.find((each) => each.id === id)?.limit
  return limit === undefined ? 'the usual one' : formatCount(limit)
}
