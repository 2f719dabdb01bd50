/** The same server in each framework, so that one set of tests covers all of them. */
import 'reflect-metadata'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { All, Controller, type INestApplication, Req } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
import { fastify } from 'fastify'
import { type Context, Hono } from 'hono'
import { spillwayExpress, spillwayExpressErrors } from '../../src/http/express.js'
import { spillwayFastify } from '../../src/http/fastify.js'
import { type HonoVariables, spillwayHono } from '../../src/http/hono.js'
import { spillwayHttp } from '../../src/http/index.js'
import { RequestCaller, SpillwayModule } from '../../src/http/nest.js'
import type { ServerCall, ServerSnapshot } from '../../src/http/server-gate.js'
import type { ServerOptions } from '../../src/http/server-options.js'

/** What the handler receives in every framework. */
export interface Handled {
  readonly path: string
  readonly body: string
  readonly call: ServerCall
}

export type Handler = (handled: Handled) => unknown

export type Options = ServerOptions<{ headers: IncomingMessage['headers'] }>

export interface Running {
  readonly url: string
  snapshot(): ServerSnapshot
  close(): Promise<void>
}

export type Start = (options: Options, handler: Handler) => Promise<Running>

export const FRAMEWORKS: Readonly<Record<string, Start>> = {
  async 'node:http'(options, handler) {
    const listener = spillwayHttp(options, async (request, response, call) => {
      const body = await bodyOf(request)
      const answer = await handler({ path: request.url ?? '', body, call })
      response.end(JSON.stringify(answer))
    })
    const server = createServer(listener)
    return { ...(await listen(server)), snapshot: listener.snapshot }
  },
  async express(options, handler) {
    const app = express()
    const gate = spillwayExpress(options)
    app.use(gate)
    app.use(express.text({ type: '*/*' }))
    app.use(async (request: express.Request & { spillway?: ServerCall }, response) => {
      const body = typeof request.body === 'string' ? request.body : ''
      const call = request.spillway as ServerCall
      response.json(await handler({ path: request.path, body, call }))
    })
    app.use(spillwayExpressErrors())
    return { ...(await listen(createServer(app))), snapshot: gate.snapshot }
  },
  async hono(options, handler) {
    const { identify, ...rest } = options
    // The request of Hono has no headers, but its context does.
    const gate = spillwayHono({
      ...rest,
      ...(identify && { identify: (context) => identify({ headers: headersOf(context) }) }),
    })
    const app = new Hono<{ Variables: HonoVariables }>()
    app.use(gate)
    app.all('*', async (context) => {
      const call = context.get('spillway')
      const body = await context.req.text()
      return context.json((await handler({ path: context.req.path, body, call })) as object)
    })
    const server = createServer(getRequestListener(app.fetch))
    return { ...(await listen(server)), snapshot: gate.snapshot }
  },
  async fastify(options, handler) {
    const app = fastify()
    app.addContentTypeParser('*', { parseAs: 'string' }, (_, body, done) => done(null, body))
    await app.register(spillwayFastify, options)
    app.all('/*', async (request) => {
      const body = typeof request.body === 'string' ? request.body : ''
      const call = request.spillway as ServerCall
      return handler({ path: request.url, body, call })
    })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, close: () => app.close(), snapshot: () => app.spillway.snapshot() }
  },
  nest(options, handler) {
    const app = express().use(express.text({ type: '*/*' }))
    return startNest(new ExpressAdapter(app), options, handler)
  },
  'nest on fastify'(options, handler) {
    const adapter = new FastifyAdapter()
    adapter
      .getInstance()
      .addContentTypeParser('*', { parseAs: 'string' }, (_, body, done) => done(null, body))
    return startNest(adapter, options, handler)
  },
}

interface NestRequest {
  url: string
  body?: unknown
}

async function startNest(
  adapter: AbstractHttpAdapter,
  options: Options,
  handler: Handler,
): Promise<Running> {
  class Answers {
    answer({ url, body }: NestRequest, call: ServerCall) {
      return handler({ path: url, body: typeof body === 'string' ? body : '', call })
    }
  }
  // Decorators without their syntax, for which these tests would need a compiler option.
  const method = Object.getOwnPropertyDescriptor(Answers.prototype, 'answer')
  Controller()(Answers)
  All('*')(Answers.prototype, 'answer', method as PropertyDescriptor)
  Req()(Answers.prototype, 'answer', 0)
  RequestCaller()(Answers.prototype, 'answer', 1)
  class App {}
  const root = {
    module: App,
    imports: [SpillwayModule.forRoot({ server: options })],
    controllers: [Answers],
  }
  const settings = { logger: false, bodyParser: false, forceCloseConnections: true } as const
  const app: INestApplication = await NestFactory.create(root, adapter, settings)
  await app.listen(0, '127.0.0.1')
  const snapshot = () => app.get(SpillwayModule).snapshot() as ServerSnapshot
  return { url: await app.getUrl(), close: () => app.close(), snapshot }
}

function headersOf(context: Context): IncomingMessage['headers'] {
  return (context.env as { incoming: IncomingMessage }).incoming.headers
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += chunk
  return body
}

async function listen(server: Server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${port}`, close }
}
