import { describe, expect, it } from 'vitest'
import { memoryStore } from '../store/memory/memory-store.js'
import type { PodStore, Store } from '../store/port.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createMembership, type MembershipOptions } from './membership.js'

function setup() {
  const clock = createVirtualClock()
  const near = memoryStore({ clock })
  const link = { down: false, beats: 0, beatMs: 5 }
  const leg = (ms = 5) => new Promise<void>((resolve) => clock.schedule(ms, resolve))
  const pods: PodStore = {
    ...near.pods,
    async beat(request) {
      link.beats++
      await leg(link.beatMs)
      if (link.down) throw new Error('down')
      return near.pods.beat(request)
    },
    async leave(request) {
      await leg()
      if (link.down) throw new Error('down')
      return near.pods.leave(request)
    },
  }
  const store: Store = { ...near, pods }
  const join = (options: Partial<MembershipOptions> = {}) =>
    createMembership({ store, clock, ...options })
  return { clock, near, link, join }
}

describe('fleet membership', () => {
  it('a new pod counts itself as the only live pod', () => {
    const { join } = setup()
    expect(join().live).toBe(1)
  })

  it('a pod sends a heartbeat every second and expires after five seconds', async () => {
    const { clock, near, link, join } = setup()
    const member = join({ pod: 'web' })
    await clock.advance(10_000)
    expect(link.beats).toBeGreaterThanOrEqual(10)
    expect(link.beats).toBeLessThanOrEqual(11)
    link.down = true
    await clock.advance(4_000)
    expect(await member.members()).toHaveLength(1)
    await clock.advance(1_100)
    expect(near.pods.list({ group: 'pods:fleet' })).toEqual([])
  })

  it('membership recovers by itself after an outage', async () => {
    const { clock, link, join } = setup()
    const [one, other] = [join(), join()]
    await clock.advance(1_010)
    expect([one.live, other.live]).toEqual([2, 2])
    link.down = true
    await clock.advance(10_000)
    // The last known count stays in use.
    expect(one.live).toBe(2)
    link.down = false
    await clock.advance(2_000)
    expect([one.live, other.live]).toEqual([2, 2])
  })

  it('a heartbeat in flight does not bring back a pod that has left', async () => {
    const { clock, near, link, join } = setup()
    const member = join()
    await clock.advance(100)
    link.beatMs = 200
    while (link.beats < 2) await clock.advance(10)
    // Without waiting for the heartbeat, the message about leaving would overtake it.
    await clock.until(member.close())
    expect(near.pods.list({ group: 'pods:fleet' })).toEqual([])
    await clock.advance(1_000)
    expect(near.pods.list({ group: 'pods:fleet' })).toEqual([])
  })

  it('onCommand is called once with each command, although every heartbeat repeats it', async () => {
    const { clock, join } = setup()
    const commands: string[] = []
    const member = join({ onCommand: (ask) => commands.push(ask) })
    await clock.advance(1_000)
    expect(await member.sendCommand(member.pod, 'drain')).toBe(true)
    await clock.advance(5_000)
    expect(commands).toEqual(['drain'])
    await member.sendCommand(member.pod, 'resume')
    await clock.advance(2_000)
    await member.sendCommand(member.pod, 'drain')
    await clock.advance(2_000)
    expect(commands).toEqual(['drain', 'resume', 'drain'])
    expect(await member.sendCommand('another', 'drain')).toBe(false)
  })

  it('close() leaves no timer and tolerates an unreachable store', async () => {
    const { clock, link, join } = setup()
    const member = join()
    await clock.advance(100)
    link.down = true
    await clock.until(member.close())
    const { fired } = clock
    await clock.advance(3_600_000)
    expect(clock.fired).toBe(fired)
  })

  it('a snapshot that cannot be serialised is sent as empty', async () => {
    const { clock, join } = setup()
    const circle: { self?: unknown } = {}
    circle.self = circle
    const member = join({ snapshot: () => circle })
    join({
      snapshot: () => {
        throw new Error('faulty')
      },
    })
    await clock.advance(100)
    expect((await member.members()).map(({ snapshot }) => snapshot)).toEqual([undefined, undefined])
  })

  it('members() lists the other pods although one of them sent invalid JSON', async () => {
    const { clock, near, join } = setup()
    const member = join({ snapshot: () => 'fine' })
    near.pods.beat({ group: 'pods:fleet', pod: 'odd', lifeUs: 5_000_000, snapshot: '{not json' })
    await clock.advance(100)
    const members = await member.members()
    expect(members).toContainEqual({ pod: 'odd', snapshot: undefined, ageMs: 100 })
    expect(members).toHaveLength(2)
  })
})
