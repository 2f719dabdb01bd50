import { setTimeout as sleep } from 'node:timers/promises'
import { redisStore } from 'spillway/redis'

// Nothing listens on port 1. This shows the error of a store whose server is unreachable.
const stores = {
  'one server': redisStore({ url: 'redis://127.0.0.1:1' }),
  Sentinels: redisStore({ sentinels: ['redis://127.0.0.1:1'], master: 'mymaster', database: 2 }),
  'a cluster': redisStore({ urls: ['redis://127.0.0.1:1'], username: 'app', password: 'secret' }),
}

for (const [name, store] of Object.entries(stores)) {
  while (store.problem === undefined) await sleep(20)
  console.log(`${name}: ready ${store.ready}, because ${store.problem}`)
  await store.close()
}

try {
  redisStore({ urls: ['redis://127.0.0.1:7000/1'] })
} catch (error) {
  console.log(String(error))
}
