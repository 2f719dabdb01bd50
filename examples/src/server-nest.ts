import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { Guard } from 'spillway'
import type { ServerCall } from 'spillway/http'
import { InjectGuard, RequestCaller, SpillwayModule } from 'spillway/nest'

@Controller()
class AnswerController {
  constructor(@InjectGuard('vendor') private readonly vendor: Guard) {}

  @Get('answer')
  answer(@RequestCaller() caller: ServerCall) {
    return this.vendor.run(() => ({ answer: 42, for: caller.ip }), caller)
  }
}

@Module({
  imports: [
    SpillwayModule.forRoot({ server: { limits: [{ per: 'ip', limit: 100, windowMs: '1m' }] } }),
    SpillwayModule.forFeature({
      vendor: { timeout: { callMs: '30s' }, limits: [{ limit: 1, windowMs: '1h' }] },
    }),
  ],
  controllers: [AnswerController],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true })
await app.listen(0, '127.0.0.1')
for (let i = 1; i <= 2; i++) {
  const response = await fetch(`${await app.getUrl()}/answer`)
  const body = (await response.json()) as { error?: { code: string } }
  const { status, headers } = response
  console.log(status, body.error?.code ?? body, headers.get('ratelimit'))
}
// Closes the guards as well.
await app.close()
