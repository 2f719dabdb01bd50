import Bottleneck from 'bottleneck'

const limiter = new Bottleneck({
  reservoir: 5,
  reservoirRefreshAmount: 5,
  reservoirRefreshInterval: 60_000,
  maxConcurrent: 2,
  highWater: 3,
  strategy: Bottleneck.strategy.OVERFLOW,
})

const send = async (id: number) => `sent ${id}`
const results = await Promise.allSettled(
  [1, 2, 3, 4, 5].map((id) => limiter.schedule(() => send(id))),
)
console.log(results.map(({ status }) => status).join(' '))
console.log('left:', await limiter.currentReservoir())
await limiter.disconnect()
