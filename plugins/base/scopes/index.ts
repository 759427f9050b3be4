import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/index.ts'
import { errors } from '../errors/index.ts'

/** The scope that a route is in (not an OAuth scope). It determines the permission that the route needs. */
type ScopeName =
  | 'public' | 'docs' | 'open' | 'api' | 'admin' | 'mcp' | 'oauth' | 'social'
  // Within the console, `console-assets` and `console-open` need no session, and `console-admin` needs an admin's
  // session.
  | 'console' | 'console-assets' | 'console-open' | 'console-admin'
/** What a route does. READONLY, Origin checks and the access matrix of the tests depend on it. */
export type RouteEffect = 'read' | 'change' | 'run'

/** A row of the route table. */
export interface RouteRow {
  readonly method: string
  /** The route pattern of the router, including the base path. */
  readonly url: string
  readonly scope: ScopeName
  readonly effect: RouteEffect
  /** Undefined for a route without a schema; the OpenAPI document of the management API omits such routes. */
  readonly schema?: FastifySchema
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The scope of the routes on this instance and its children. */
    scope: ScopeName
    /** All routes, in the order of registration. Those of an annex are added when it is created. */
    routeTable: RouteRow[]
    /**
     * The methods that a path allows; empty if it has no route.
     * @param onlyStatic whether to consider only routes without parameters
     */
    methodsAt: (path: string, onlyStatic?: boolean) => string[]
  }
  interface FastifyContextConfig {
    effect?: RouteEffect
    /**
     * Omits the route from the route table: it only hands requests over to a route of an annex, which is in the table.
     */
    isUnlisted?: true
  }
}

/** Sets the scope of the routes registered on this instance and its children from now on. */
export function setRouteScope (app: FastifyInstance, scope: ScopeName): void {
  app.scope = scope
}

/** Safe methods (RFC 9110, section 9.2.1). */
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Decorates the app with `scope` and `routeTable`, and adds each new route to the table. */
function keepRouteTable (app: FastifyInstance): void {
  app.decorate('scope', 'public')
  app.decorate('routeTable', [])
  listRoutes(app, app.routeTable)
}

/** Adds each new route of an app to a table. Registering a route that does not state its effect throws an Error. */
function listRoutes (app: FastifyInstance, table: RouteRow[]): void {
  app.addHook('onRoute', function (this: FastifyInstance, { method, url, config, schema }) {
    if (config?.isUnlisted === true) return
    for (const each of [method].flat()) {
      // Routes of libraries state no effect: CORS preflights, documentation pages, and files.
      const isLibrary = each === 'OPTIONS' || this.scope === 'docs' || this.scope === 'console-assets'
      const effect = config?.effect ?? (isLibrary ? 'read' : undefined)
      if (effect === undefined) throw new Error(`The route ${each} ${url} does not state its effect`)
      table.push({ method: each, url, scope: this.scope, effect, schema })
    }
  })
}

/**
 * If READONLY is set, rejects requests that may change settings: those with an unsafe method, unless their route has
 * the effect `run`.
 */
function refuseChanges (app: FastifyInstance, { basePath, env: { READONLY: readonly } }: Config): void {
  if (!readonly) return
  // Routes with the effect `run`, which run tools or log users in, do not change settings.
  app.addHook('onRequest', (request: FastifyRequest, _reply: FastifyReply, done) => {
    const isHarmless = safeMethods.has(request.method) || request.routeOptions.config?.effect === 'run'
    const isUnknownTool = request.is404 && request.url.startsWith(`${basePath}/tools/`)
    if (isHarmless || isUnknownTool) done()
    else done(new errors.ReadOnly())
  })
}

/** Decorates the app with `scope`, `routeTable` and `methodsAt`, and applies READONLY. */
export default fp(async (app) => {
  keepRouteTable(app)
  await app.annexes.onEveryApp(app, (each) => {
    if (each !== app) listRoutes(each, app.routeTable)
    refuseChanges(each, app.config)
  })
  const { PUBLIC_TOOLS: publicTools } = app.config.env
  app.decorate('methodsAt', allowedMethodsLookup(app.routeTable, (scope) => scope === 'open' && publicTools === 'off'))
}, { name: 'scopes', dependencies: ['config', 'errors'] })

/** Scopes that are always enabled. While another scope is disabled, its paths answer 404 to any method. */
const permanentScopes: readonly string[] = ['public', 'docs', 'open', 'api', 'admin', 'mcp']

/** Converts a route pattern to a regular expression. */
const patternOf = (url: string): RegExp => {
  const parts = url.replace(/(?<=.)\/$/, '').split('/').map((part) =>
    part.startsWith(':')
      ? '[^/]+'
      : part.split('*').map((text) => text.replace(/[\\^$.|?+()[\]{}]/g, '\\$&')).join('.*'))
  return new RegExp(`^${parts.join('/')}/?$`)
}

/**
 * Returns a function that lists the allowed methods of a path, for the `Allow` header.
 * @param table the route table; it may grow, since the creation of an annex adds routes
 * @param isHidden tells whether the routes of a scope answer as if they did not exist
 */
export function allowedMethodsLookup (
  table: ReadonlyArray<Readonly<Record<'method' | 'url' | 'scope', string>>>,
  isHidden: (scope: string) => boolean
): (path: string, onlyStatic?: boolean) => string[] {
  let patterns: Array<{ pattern: RegExp, isStatic: boolean, methods: string[] }> | undefined
  const compile = (): NonNullable<typeof patterns> => {
    const byUrl = new Map<string, string[]>()
    for (const { method, url, scope } of table) {
      // MCP routes have handlers for PUT and PATCH only to refuse them.
      if (method === 'OPTIONS' || !permanentScopes.includes(scope) || isHidden(scope) || (scope === 'mcp' &&
          /^P(?:UT|ATCH)$/.test(method))) continue
      byUrl.set(url, [...byUrl.get(url) ?? [], method])
    }
    return [...byUrl].map(([url, methods]) => ({ pattern: patternOf(url), isStatic: !/[:*]/.test(url), methods }))
  }
  let size = 0
  return (path, onlyStatic = false) => {
    if (table.length > size) patterns = undefined
    size = table.length
    patterns ??= compile()
    const matching = patterns.filter((each) => (each.isStatic || !onlyStatic) && each.pattern.test(path))
    return [...new Set(matching.flatMap(({ methods }) => methods))].sort()
  }
}
