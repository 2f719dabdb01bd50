/** Membership of pods. */
import {
  createCircuitBreaker,
  createMembership,
  type Membership,
  type MembershipOptions,
} from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { eventually } from './fleet.js'

export function claimMembers(fleet: Fleet): void {
  let groups = 0
  const createGroup = (options: Partial<MembershipOptions> = {}) => {
    const name = `group-${++groups}`
    return (own: Partial<MembershipOptions> = {}): Membership => {
      const { clock } = fleet
      const pod = createMembership({ name, clock, store: fleet.store(), ...options, ...own })
      onTestFinished(() => pod.close())
      return pod
    }
  }
  const podsOf = async (one: Membership) => (await one.members()).map(({ pod }) => pod).sort()

  describe('fleet members', () => {
    it('members know how many pods are live', async () => {
      const join = createGroup({ heartbeatMs: 50, lifeMs: 2_000 })
      const all = Array.from({ length: 5 }, () => join())
      await eventually(fleet, () => all.every(({ live }) => live === 5))
      expect(await podsOf(all[0]!)).toEqual(all.map(({ pod }) => pod).sort())
    })

    it('each heartbeat carries a fresh snapshot of the pod', async () => {
      const join = createGroup({ heartbeatMs: 50, lifeMs: 2_000 })
      let calls = 0
      const reporting = join({ pod: 'reporting', snapshot: () => ({ calls, 'ü:{}"': ['\n'] }) })
      const silent = join({ pod: 'silent' })
      calls = 7
      let members = await silent.members()
      for (let beat = 0; beat < 100 && !JSON.stringify(members).includes('"calls":7'); beat++) {
        await fleet.sleep(50)
        members = await silent.members()
      }
      const of = (pod: string) => members.find((member) => member.pod === pod)
      expect(of(reporting.pod)).toMatchObject({ snapshot: { calls: 7, 'ü:{}"': ['\n'] } })
      expect(of(reporting.pod)!.ageMs).toBeLessThan(2_000)
      expect(of(silent.pod)).toMatchObject({ snapshot: undefined })
      expect(reporting.pod).toMatch(/^reporting-./)
    })

    it('a pod without heartbeats disappears after its lifetime', async () => {
      const join = createGroup({ heartbeatMs: 50, lifeMs: 30_000 })
      const [one, other] = [join(), join()]
      // Sends no second heartbeat within this test.
      const dying = join({ heartbeatMs: 60_000, lifeMs: 300 })
      await eventually(fleet, () => one.live === 3)
      await fleet.sleep(300)
      await eventually(fleet, () => one.live === 2 && other.live === 2)
      expect(await podsOf(one)).not.toContain(dying.pod)
    })

    it('a pod that leaves disappears at once', async () => {
      const join = createGroup({ heartbeatMs: 60_000 })
      const [one, leaving] = [join(), join()]
      await eventually(fleet, () => one.live + leaving.live >= 3)
      expect(await podsOf(one)).toHaveLength(2)
      await fleet.until(leaving.close())
      expect(await podsOf(one)).toEqual([one.pod])
    })

    it('a restarted pod is a new member', async () => {
      const join = createGroup({ heartbeatMs: 60_000, pod: 'web' })
      const before = join()
      const after = join()
      expect(before.pod).not.toBe(after.pod)
      await eventually(fleet, () => before.live + after.live >= 3)
      expect(await podsOf(after)).toHaveLength(2)
    })

    it('a group and a breaker of the same name have separate members', async () => {
      const name = 'group-and-breaker'
      const { clock } = fleet
      const member = createGroup({ name, snapshot: () => 'here' })()
      const breaker = createCircuitBreaker({ name, clock, store: fleet.store(), quorum: 2 })
      await fleet.sleep(100)
      await fleet.until(breaker.close())
      expect(await member.members()).toMatchObject([{ pod: member.pod, snapshot: 'here' }])
      const other = createCircuitBreaker({ name, clock, store: fleet.store(), quorum: 2 })
      onTestFinished(() => other.close())
      await fleet.sleep(100)
      expect(await podsOf(member)).toEqual([member.pod])
    })

    it('a group does not list members of another group', async () => {
      const [one] = [createGroup()(), createGroup()()]
      await fleet.sleep(50)
      expect(await podsOf(one)).toEqual([one.pod])
    })
  })
}
