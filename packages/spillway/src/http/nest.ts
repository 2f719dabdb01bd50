/**
 * For NestJS 12, on Express or Fastify: `SpillwayModule.forRoot(options)`. Guards of downstreams are injected with
 * `@InjectGuard(name)`. Nest calls the functions that admit requests "guards" as well; these here are Spillway's.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type CallHandler,
  createParamDecorator,
  type DynamicModule,
  type ExecutionContext,
  type FactoryProvider,
  HttpException,
  Inject,
  type ModuleMetadata,
  type NestInterceptor,
  type NestModule,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { APP_INTERCEPTOR, HttpAdapterHost } from '@nestjs/core'
import { catchError, Observable } from 'rxjs'
import { refusalBody, refusalHeaders } from '../core/refusal-answer.js'
import { refusalToAnswer } from '../core/refusal-of.js'
import type { GuardOptions } from '../guard/options.js'
import { createSpillway, type Spillway, type SpillwayOptions } from '../guard/spillway.js'
import { type ExpressMiddleware, type ExpressRequest, spillwayExpress } from './express.js'
import type { ServerCall, ServerSnapshot } from './server-gate.js'
import type { ServerOptions } from './server-options.js'

/** Options of `SpillwayModule.forRoot()`. */
export interface NestOptions {
  /** A Spillway of the application, which closes it. Default: one that the module creates and closes. */
  spillway?: Spillway
  /** Options of the Spillway that the module creates. Default: those of `createSpillway()`. */
  options?: SpillwayOptions
  /** Sheds, limits and sets deadlines before the controllers. Default: requests are not checked. */
  server?: ServerOptions<IncomingMessage>
}

/** Options of `SpillwayModule.forRootAsync()`. */
export interface NestAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** Tokens of the providers that the factory gets. Default: none. */
  inject?: FactoryProvider['inject']
  /** Returns the options. */
  useFactory: (...args: never[]) => NestOptions | Promise<NestOptions>
}

/** Token of the `Spillway` that guards belong to: `@Inject(SPILLWAY)`. */
export const SPILLWAY: unique symbol = Symbol('spillway')

const OPTIONS = Symbol('spillway options')
const GATE = Symbol('spillway gate')
const CONTEXT = Symbol('spillway context')

type Gate = ExpressMiddleware<ExpressRequest> | undefined
type GateRequest = ExpressRequest & {
  /** Runs a function in the async context that was current when the request was admitted. */
  [CONTEXT]?: ReturnType<typeof AsyncLocalStorage.snapshot>
  /** Fastify: Node's own request, which the gate has seen. */
  raw?: GateRequest
}

/** Token of the guard with this name, for tests that replace it. */
export function guardToken(name: string): string {
  return `spillway guard ${name}`
}

/**
 * Injects the guard with this name. The module that uses it imports `SpillwayModule.forFeature()` with its options.
 *
 * @example
 * constructor(@InjectGuard('openai') private readonly openai: Guard) {}
 */
export function InjectGuard(name: string): ParameterDecorator & PropertyDecorator {
  return Inject(guardToken(name))
}

/**
 * Passes the caller of the request to a handler: give it to a guard's `run`. Undefined without the option `server`.
 *
 * @example
 * answer(@RequestCaller() caller: ServerCall) { return this.openai.run(() => ask(), caller) }
 */
export const RequestCaller: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext): ServerCall | undefined =>
    nodeRequestOf(context).spillway,
)

/** The module: `forRoot()` once, in the module of the application, and `forFeature()` where guards are used. */
export class SpillwayModule implements NestModule {
  readonly #gate: Gate
  readonly #host: HttpAdapterHost

  constructor(gate: Gate, host: HttpAdapterHost) {
    this.#gate = gate
    this.#host = host
  }

  /**
   * Creates the Spillway of the application, and the gate before its controllers.
   *
   * @example
   * SpillwayModule.forRoot({ server: { limits: [{ per: 'ip', limit: 100, windowMs: '1m' }] } })
   */
  static forRoot(options: NestOptions = {}): DynamicModule {
    return SpillwayModule.forRootAsync({ useFactory: () => options })
  }

  /**
   * `forRoot()` with options that other providers decide, such as a configuration.
   *
   * @example
   * SpillwayModule.forRootAsync({ inject: [ConfigService], useFactory: (config) => ({ options: config.get('spillway') }) })
   */
  static forRootAsync({ imports = [], inject = [], useFactory }: NestAsyncOptions): DynamicModule {
    return {
      module: SpillwayModule,
      global: true,
      imports,
      providers: [
        { provide: OPTIONS, inject, useFactory },
        {
          provide: SPILLWAY,
          inject: [OPTIONS],
          useFactory: ({ spillway, options }: NestOptions) => spillway ?? createSpillway(options),
        },
        {
          provide: GATE,
          inject: [OPTIONS],
          useFactory: ({ server }: NestOptions) => server && spillwayExpress(server),
        },
        {
          provide: SpillwayShutdown,
          inject: [SPILLWAY, OPTIONS],
          useFactory: (spillway: Spillway, { spillway: given }: NestOptions) =>
            new SpillwayShutdown(given === undefined ? spillway : undefined),
        },
        {
          provide: APP_INTERCEPTOR,
          inject: [HttpAdapterHost],
          useFactory: (host: HttpAdapterHost) => new RefusalInterceptor(host),
        },
      ],
      exports: [SPILLWAY],
    }
  }

  /**
   * Creates guards and provides them to the module that imports this.
   *
   * @example
   * SpillwayModule.forFeature({ openai: llmDefaults({ requestsPerMinute: 500 }) })
   */
  static forFeature(guards: Readonly<Record<string, GuardOptions>>): DynamicModule {
    const providers = Object.entries(guards).map(([name, options]) => ({
      provide: guardToken(name),
      inject: [SPILLWAY],
      useFactory: (spillway: Spillway) => spillway.guard(name, options),
    }))
    const exports = providers.map(({ provide }) => provide)
    return { module: SpillwayFeatureModule, providers, exports }
  }

  /** Called by Nest before it adds routes, so the gate comes first for routes with any prefix. */
  configure(): void {
    const gate = this.#gate
    if (gate === undefined) return
    this.#host.httpAdapter.use(
      (request: GateRequest, response: ServerResponse, next: (error?: unknown) => void) =>
        gate(request, response, (error) => {
          request[CONTEXT] = AsyncLocalStorage.snapshot()
          next(error)
        }),
    )
  }

  /** Counts of admitted and refused requests; undefined without the option `server`. */
  snapshot(): ServerSnapshot | undefined {
    return this.#gate?.snapshot()
  }
}

// Decorator syntax would need a compiler option that no other file needs.
Inject(GATE)(SpillwayModule, undefined, 0)
Inject(HttpAdapterHost)(SpillwayModule, undefined, 1)

class SpillwayFeatureModule {}

/** `app.close()` and, with `enableShutdownHooks()`, signals drain the guards. */
class SpillwayShutdown implements OnApplicationShutdown {
  readonly #spillway: Spillway | undefined

  constructor(spillway: Spillway | undefined) {
    this.#spillway = spillway
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#spillway?.close()
  }
}

/** Turns refusals into Nest's exceptions, and runs handlers in the async context of the gate. */
class RefusalInterceptor implements NestInterceptor {
  readonly #host: HttpAdapterHost

  constructor(host: HttpAdapterHost) {
    this.#host = host
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'http') return next.handle()
    const inside = nodeRequestOf(context)[CONTEXT]
    const answer =
      inside === undefined
        ? next.handle()
        : // Bodies are read in events of the connection, outside of the request's async context.
          new Observable((subscriber) => inside(() => next.handle().subscribe(subscriber)))
    return answer.pipe(
      catchError((error: unknown) => {
        throw this.#exceptionFor(error, context)
      }),
    )
  }

  #exceptionFor(error: unknown, context: ExecutionContext): unknown {
    const refusal = refusalToAnswer(error)
    if (refusal === undefined) return error
    const response = context.switchToHttp().getResponse<unknown>()
    for (const [name, value] of Object.entries(refusalHeaders(refusal))) {
      this.#host.httpAdapter.setHeader(response, name, String(value))
    }
    return new HttpException(JSON.parse(refusalBody(refusal)), refusal.status, { cause: error })
  }
}

function nodeRequestOf(context: ExecutionContext): GateRequest {
  const request = context.switchToHttp().getRequest<GateRequest>()
  return request.raw ?? request
}
