// https://github.com/SGrondin/bottleneck#clustering: `id`, `datastore`, an `expiration` on every job and an `error`
// listener are "strongly recommended". The README starts with `minTime` ("enough for the majority of use
// cases"). A reservoir would count windows, but its interval has to be a multiple of 5 seconds with clustering.
import Bottleneck from 'bottleneck'
import Redis from 'ioredis'

export async function createLimiter({ redis, name, limit, windowMs, work }) {
  const limiter = new Bottleneck({
    id: name,
    datastore: 'ioredis',
    clientOptions: { host: redis.host, port: redis.port },
    Redis,
    minTime: windowMs / limit,
  })
  limiter.on('error', () => {})
  await limiter.ready()
  return () => limiter.schedule({ expiration: 10_000 }, work)
}
