/** What operators may see and do over the admin port, each attempt of which leaves a line in the log. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type Operator,
  type OperatorRequest,
  OptionsError,
  type Spillway,
  SpillwayError,
  type SpillwayEvent,
} from 'spillway'
import type { OperatorAccess } from 'spillway/http'
import { attempt } from './audit.js'
import { turnAway } from './hardening.js'

export interface ConfigAnswer {
  readonly ok: boolean
  /** In words, for people: what is in force now, or every mistake. */
  readonly message: string
  /** What else there is to say. */
  readonly report?: unknown
}

/** What a gateway that was started from a file can do with it. */
export interface ConfigHooks {
  /** Which configuration is in force, and what became of the last one that was read. */
  status(): {
    readonly generation: number
    readonly since: string
    readonly afterRestart: readonly string[]
    readonly refused: { readonly at: string; readonly reason: string } | undefined
  }
  /** Looks whether the file could be used. None: there is no file. */
  check?(): Promise<ConfigAnswer> | ConfigAnswer
  /** Uses it, if it can be used. */
  reload?(by: string): Promise<ConfigAnswer> | ConfigAnswer
}

export interface OperationsOptions {
  readonly access: OperatorAccess
  readonly spillway: Spillway
  readonly snapshot: () => object | Promise<object>
  /** Of the configuration that is in force. */
  readonly operator: () => Operator
  readonly audit: (event: SpillwayEvent) => void
  readonly config: ConfigHooks
}

export function operations(options: OperationsOptions) {
  const { access, spillway, snapshot, operator, audit, config } = options

  async function guarded(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const looks = request.method === 'GET' || request.method === 'HEAD'
    const denial = looks ? access.look(request.raw) : access.act(request.raw)
    return denial && turnAway(denial, request, reply, audit)
  }

  return async (server: FastifyInstance): Promise<void> => {
    server.addHook('onRequest', guarded)
    server.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
      const { status, code } = statusOf(error)
      // What was asked of the operator has been told already.
      if (!(error instanceof OptionsError || error instanceof SpillwayError)) {
        audit(attempt(request, 'refused', `${code}: ${error.message}`))
      }
      return reply.code(status).send({ error: { code, message: error.message } })
    })
    server.get('/snapshot', () => snapshot())
    server.get('/status', () => spillway.fleet())
    server.get('/config', () => config.status())
    server.post('/actions', (request) =>
      operator().perform({ ...bodyOf(request), from: request.ip } as OperatorRequest),
    )
    for (const what of ['check', 'reload'] as const) {
      server.post(`/config/${what}`, async (request, reply) => {
        const { by = '' } = bodyOf(request) as { by?: unknown }
        const none = { ok: false, message: `this gateway has no file that it could ${what}` }
        const answer = (await config[what]?.(String(by))) ?? none
        audit(attempt(request, answer.ok ? 'done' : 'refused', answer.message, String(by)))
        return reply.code(answer.ok ? 200 : config[what] === undefined ? 501 : 422).send(answer)
      })
    }
  }
}

function bodyOf({ body }: FastifyRequest): Record<string, unknown> {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
}

function statusOf(error: Error & { statusCode?: number }): { status: number; code: string } {
  if (error instanceof OptionsError) return { status: 400, code: error.code }
  if (error instanceof SpillwayError) return { status: error.status, code: error.code }
  const { statusCode: status = 500 } = error
  return { status, code: status === 415 ? 'NOT_JSON' : status < 500 ? 'INVALID_BODY' : 'INTERNAL' }
}
