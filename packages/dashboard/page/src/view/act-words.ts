/** What an act is called, and what it will do to whom: said before anybody is asked whether they are sure. */
import { countOf, formatCount, formatMs } from '../format'
import { fleet, hello } from '../model/live'
import type { Act } from '../wire'

export interface ActWords {
  title: string
  consequence: string
  button: string
  /** Somebody is refused because of it. */
  harsh: boolean
}

export function wordsFor(act: Act): ActWords {
  switch (act.act) {
    case 'isolate':
      return {
        title: `Isolate ${act.guard}`,
        consequence: `Every call to ${target(act)} is refused with CIRCUIT_OPEN for ${formatMs(act.forMs)}, on ${everyPod()}. Calls that run now finish; fallbacks answer where there are any. It ends by itself, or when somebody releases it.`,
        button: 'Isolate',
        harsh: true,
      }
    case 'release':
      return {
        title: `Release ${act.guard}`,
        consequence: `Ends the isolation of ${target(act)} that was asked for from here, on ${everyPod()}. What others have isolated, and what the breaker itself has decided, still counts.`,
        button: 'Release',
        harsh: false,
      }
    case 'reset':
      return {
        title: `Reset the breaker of ${act.guard}`,
        consequence: `Closes the breaker of ${target(act)} on ${everyPod()}, forgets what it has counted, and ends everybody’s isolation of it. Calls go to the vendor at once; if it is still broken, the breaker opens again.`,
        button: 'Reset',
        harsh: false,
      }
    case 'pause':
      return {
        title: `Pause ${act.guard}`,
        consequence: `No call to ${target(act)} begins for ${formatMs(act.forMs)}, on ${everyPod()}, as if the vendor had asked for it. Calls wait as long as their queue timeout allows, others are refused with VENDOR_LIMITED.`,
        button: 'Pause',
        harsh: true,
      }
    case 'limit':
      return {
        title: `Change a limit of ${act.guard}`,
        consequence: `The limit “${act.id}” is ${formatCount(act.limit)} instead of ${usualLimit(act)} for ${formatMs(act.forMs)}, on ${everyPod()}; then it is what it was. What has been spent stays spent.`,
        button: 'Change the limit',
        harsh: true,
      }
    case 'drain':
      return {
        title: `Drain pod ${act.pod}`,
        consequence: `The pod ${act.pod} stops taking requests, finishes those that run, and ends. ${rest(act.pod)} Whether another one is started in its place is up to what runs your pods.`,
        button: 'Drain',
        harsh: true,
      }
    case 'replay':
      return {
        title: act.id === undefined ? `Retry all dead letters` : 'Retry a dead letter',
        consequence:
          act.id === undefined
            ? `Every dead letter of the queue ${act.queue} goes back to its end, with all of its attempts.`
            : `The job ${act.id} goes back to the end of the queue ${act.queue}, with all of its attempts.`,
        button: 'Retry',
        harsh: false,
      }
    case 'demo':
      return {
        title: 'Demonstration',
        consequence: demoWords(act),
        button: 'Do it',
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
    ? 'The mock vendor answers with errors until it is mended.'
    : 'The mock vendor works again.'
}

function target({ guard, lane }: { guard: string; lane?: string }): string {
  return lane === undefined ? `${guard}, all lanes,` : `${guard}, lane ${lane},`
}

function everyPod(): string {
  const known = fleet.value
  if (known === undefined || known.store.status === 'memory') return 'this pod'
  const count = known.pods.length + known.podsLeftOut
  return count === 1 ? 'the one pod there is' : `all ${formatCount(count)} pods`
}

function rest(pod: string): string {
  const others = (fleet.value?.pods ?? []).filter((each) => each.pod !== pod && each.state === 'up')
  if (others.length === 0) return 'It is the only one: nobody answers requests then.'
  return `${countOf(others.length, 'other pod')} ${others.length === 1 ? 'goes' : 'go'} on.`
}

function usualLimit({ guard, id }: { guard: string; id: string }): string {
  const card = hello.value?.guards.find(({ name }) => name === guard)
  const limit = card?.limits?.find((each) => each.id === id)?.limit
  return limit === undefined ? 'what it is' : formatCount(limit)
}
