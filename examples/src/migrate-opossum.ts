import { createSpillway, staticValue } from 'spillway'

let isDown = true
async function charge(amount: number): Promise<string> {
  if (isDown) throw new Error('503 from the payment API')
  return `charged ${amount}`
}

const spillway = createSpillway() // with redisStore({ url }) one breaker holds for all pods
const payments = spillway.guard('payments', {
  timeout: { callMs: 3_000 },
  breaker: { failureRate: 0.5, minimumCalls: 2, openMs: 100, successes: 1 },
  fallback: [staticValue('charged later')],
})

for (let call = 1; call <= 3; call++) console.log(await payments.run(() => charge(call)))
console.log(
  'open:',
  payments.snapshot().breakers.some(({ state }) => state === 'open'),
)
isDown = false
await new Promise((wake) => setTimeout(wake, 150))
console.log(await payments.run(() => charge(4)))
await spillway.close()
