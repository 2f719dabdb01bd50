import { once } from 'node:events'
import { expect, it } from 'vitest'
import { Batcher } from './batcher.js'

it('a callback that throws does not keep the other replies of its batch from being delivered', async () => {
  const batcher = new Batcher<number, number>({
    send: async (requests) => requests.map((each) => each * 2),
    instead: () => 0,
  })
  const delivered: number[] = []
  const ask = (request: number, onReply: (reply: number) => void) =>
    batcher.add(request, { onReply, onFailure: () => {} })
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  const mistake = once(process, 'uncaughtException')
  ask(1, () => {
    throw new Error('a mistake')
  })
  ask(2, (reply) => delivered.push(reply))
  const [error] = await mistake
  for (const each of others) process.on('uncaughtException', each)
  expect(error).toMatchObject({ message: 'a mistake' })
  expect(delivered).toEqual([4])
})
