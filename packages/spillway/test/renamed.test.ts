/** Names from before the first release are errors that name their replacement. */
import { expect, it } from 'vitest'
import { createOperatorAccess } from '../src/http/index.js'
import { createFeatureManager, createSpillway } from '../src/index.js'
import {
  createJobQueue,
  createMembership,
  createSharedRateLimiter,
  memoryStore,
} from '../src/shared/index.js'

it('spillway.queue() throws and names spillway.jobQueue()', async () => {
  const spillway = createSpillway()
  const former = spillway as unknown as { queue(name: string): void }
  expect(() => former.queue('mails')).toThrow('use spillway.jobQueue()')
  await spillway.close()
})

it('the option onAsk of a membership is an error that names onCommand', () => {
  const options = { store: memoryStore(), onAsk: () => {} } as never
  expect(() => createMembership(options)).toThrow(/onAsk: .*onCommand/)
})

it('limiter.heed() throws and names limiter.updateFromResponse()', async () => {
  const limits = [{ unit: 'requests', limit: 5, windowMs: 1_000 }]
  const limiter = createSharedRateLimiter({ name: 'vendor', store: memoryStore(), limits })
  const former = limiter as unknown as { heed(): void }
  expect(() => former.heed()).toThrow('use limiter.updateFromResponse()')
  await limiter.close()
})

it('queue.standing() throws and names queue.jobStatus(), with and without a guard', async () => {
  const spillway = createSpillway()
  const guard = spillway.guard('mail', {})
  const queues = [
    spillway.jobQueue('mails', { guard }),
    createJobQueue({ store: memoryStore(), name: 'mails', guard: 'mail' }),
  ]
  for (const queue of queues) {
    const former = queue as unknown as { standing(id: string): void }
    expect(() => former.standing('1')).toThrow('use queue.jobStatus()')
  }
  await spillway.close()
})

it('features.look() throws and names features.evaluate()', () => {
  const features = createFeatureManager()
  const former = features as unknown as { look(): void }
  expect(() => former.look()).toThrow('use features.evaluate()')
  features.close()
})

it('access.stranger() throws and names access.checkOrigin()', () => {
  const former = createOperatorAccess() as unknown as { stranger(): void }
  expect(() => former.stranger()).toThrow('use access.checkOrigin()')
})

it('membership.ask() throws and names membership.sendCommand()', async () => {
  const membership = createMembership({ store: memoryStore() })
  const former = membership as unknown as { ask(): void }
  expect(() => former.ask()).toThrow('use membership.sendCommand()')
  await membership.close()
})
