/** Names from before the first release are errors that name their replacement. */
import { expect, it } from 'vitest'
import { createSpillway } from '../src/index.js'

it('spillway.queue() throws and names spillway.jobQueue()', async () => {
  const spillway = createSpillway()
  const former = spillway as unknown as { queue(name: string): void }
  expect(() => former.queue('mails')).toThrow('use spillway.jobQueue()')
  await spillway.close()
})
