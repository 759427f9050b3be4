import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import fp from 'fastify-plugin'
import { errors } from '../errors/index.ts'

/** The scope of a route, which determines the permission it needs. */
type ScopeName = 'public' | 'docs' | 'open' | 'api' | 'admin' | 'mcp' | 'oauth' | 'social'
/** The effect of a route: READONLY, Origin checks and the access matrix derive from it. */
export type Effect = 'read' | 'change' | 'run'

/** One row of the route table. */
export interface RouteRow {
  readonly method: string
  /** The pattern that the router knows, with the base path. */
  readonly url: string
  readonly scope: ScopeName
  readonly effect: Effect
  /** Undefined: the route has none, and the document of the API leaves it out. */
  readonly schema?: FastifySchema
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The scope of the routes on this instance and its children. */
    scope: ScopeName
    /** All routes, in the order of registration. Those of an annex come when it is made. */
    routeTable: RouteRow[]
    /** The methods that a path takes; empty for a path without a route. */
    methodsAt: (path: string) => string[]
  }
  interface FastifyContextConfig {
    effect?: Effect
    /** The route is not in the table: it stands for others. */
    isUnlisted?: true
  }
}

/** Sets the scope of the routes that are registered on this instance and its children from now on. */
export function enterScope (app: FastifyInstance, scope: ScopeName): void {
  app.scope = scope
}

/** Methods that change nothing (RFC 9110 §9.2.1). */
const safe = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * `app.routeTable`, and READONLY, which follows from the effects of routes.
 * @throws Error at registration for a route that does not state its effect
 */
export default fp(async (app) => {
  const { basePath, env: { READONLY: readonly, PUBLIC_TOOLS: publicTools } } = app.config
  const table: RouteRow[] = []
  app.decorate('scope', 'public')
  app.decorate('routeTable', table)
  app.decorate('methodsAt', methodsOf(table, (scope) => scope === 'open' && publicTools === 'off'))
  await app.annexes.onEveryApp(app, (each) => {
    each.addHook('onRoute', function (this: FastifyInstance, { method, url, config, schema }) {
      if (config?.isUnlisted === true) return
      for (const each of [method].flat()) {
        // Routes of libraries state no effect: CORS preflights, and the documentation pages.
        const isLibrary = each === 'OPTIONS' || this.scope === 'docs'
        const effect = config?.effect ?? (isLibrary ? 'read' : undefined)
        if (effect === undefined) throw new Error(`The route ${each} ${url} does not state its effect`)
        table.push({ method: each, url, scope: this.scope, effect, schema })
      }
    })
    if (readonly) each.addHook('onRequest', refuseChanges)
  })
  // Running tools and logging in changes no settings.
  function refuseChanges (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
    const isHarmless = safe.has(request.method) || request.routeOptions.config?.effect === 'run'
    const isUnknownTool = request.is404 && request.url.startsWith(`${basePath}/tools/`)
    if (isHarmless || isUnknownTool) done()
    else done(new errors.ReadOnly())
  }
}, { name: 'scopes', dependencies: ['config', 'errors'] })

/**
 * Scopes whose routes exist in any configuration. The paths of the others answer 404 while they are off, whatever the
 * method.
 */
const always: readonly string[] = ['public', 'docs', 'open', 'api', 'admin', 'mcp']

/** A path of the router as a pattern. */
const patternOf = (url: string): RegExp => {
  const parts = url.replace(/(?<=.)\/$/, '').split('/').map((part) =>
    part.startsWith(':')
      ? '[^/]+'
      : part.split('*').map((text) => text.replace(/[\\^$.|?+()[\]{}]/g, '\\$&')).join('.*'))
  return new RegExp(`^${parts.join('/')}/?$`)
}

/**
 * The methods that a path takes, for requests with another one.
 * @param table read again when it has grown by the routes of an annex
 * @param isHidden whether a scope answers as if it did not exist
 */
export function methodsOf (
  table: ReadonlyArray<Readonly<Record<'method' | 'url' | 'scope', string>>>,
  isHidden: (scope: string) => boolean
): (path: string) => string[] {
  let patterns: Array<{ pattern: RegExp, methods: string[] }> | undefined
  const compile = (): Array<{ pattern: RegExp, methods: string[] }> => {
    const byUrl = new Map<string, string[]>()
    for (const { method, url, scope } of table) {
      // MCP routes take PUT and PATCH only to say that they do not.
      if (method === 'OPTIONS' || !always.includes(scope) || isHidden(scope) || (scope === 'mcp' &&
          /^P(?:UT|ATCH)$/.test(method))) continue
      byUrl.set(url, [...byUrl.get(url) ?? [], method])
    }
    return [...byUrl].map(([url, methods]) => ({ pattern: patternOf(url), methods }))
  }
  let size = 0
  return (path) => {
    if (table.length > size) patterns = undefined
    size = table.length
    patterns ??= compile()
    return [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods))].sort()
  }
}
