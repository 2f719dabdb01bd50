/** Names from before the first release are errors that name their replacement. */
import { expect, it } from 'vitest'
import { createSpillway } from '../src/index.js'
import { createMembership, memoryStore } from '../src/shared/index.js'

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
