import { createSpillway, onEvent } from 'spillway'

const spillway = createSpillway()
const openai = spillway.guard('openai', {
  timeout: { callMs: '30s' },
  userLimits: [{ per: 'user', limit: 2, windowMs: '1m' }],
  limits: [{ limit: 3, windowMs: '1m' }],
  shadow: ['user-limit', 'vendor-limit'],
})
const stop = onEvent((event) => {
  if (event.type !== 'guard.would-have-refused') return
  const { stage, code, details } = event
  console.log(`  ${stage} would have refused with ${code}, limit ${details.limit ?? 3}`)
})

for (const user of ['ann', 'ann', 'ann', 'ben']) {
  console.log(user, await openai.run(() => 'is answered', { user }))
}
console.log(openai.snapshot().wouldHaveRefused)
stop()
await spillway.close()
