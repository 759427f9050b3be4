import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { errors } from '../errors/list.ts'

/** Where a route stands, which is the permission it needs. */
export type ScopeName = 'public' | 'docs' | 'open' | 'api' | 'admin' | 'mcp'
/** What a route does to the world: READONLY, Origin checks and the access matrix derive from it. */
export type Effect = 'read' | 'change' | 'run'

/** One row of the live route table. `url` as the router knows it, with the base path. */
export interface RouteRow { readonly method: string, readonly url: string, readonly scope: ScopeName, readonly effect: Effect }

declare module 'fastify' {
  interface FastifyInstance {
    /** The scope of what is registered on this instance and below it. */
    scope: ScopeName
    /** Every route there is, as it was registered. */
    routeTable: RouteRow[]
  }
  interface FastifyContextConfig { effect?: Effect }
}

/** What is registered on this instance from now on, and below it, stands in this scope. */
export function enterScope (app: FastifyInstance, scope: ScopeName): void {
  app.scope = scope
}

const safe = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface ScopeOptions { readonly: boolean, basePath: string }

/** `app.routeTable`, and what follows from the effect of a route. A route that does not state its effect is not started with. */
export default fp<ScopeOptions>(async (app, { readonly, basePath }) => {
  const table: RouteRow[] = []
  app.decorate('scope', 'public')
  app.decorate('routeTable', table)
  app.addHook('onRoute', function (this: FastifyInstance, { method, url, config }) {
    for (const each of [method].flat()) {
      // A library's routes do not know of effects: preflights, and the pages of the documentation.
      const effect = config?.effect ?? (each === 'OPTIONS' || this.scope === 'docs' ? 'read' : undefined)
      if (effect === undefined) throw new Error(`The route ${each} ${url} does not state its effect`)
      table.push({ method: each, url, scope: this.scope, effect })
    }
  })
  if (!readonly) return
  // Running tools and logging in changes nothing that is written down (DECISIONS §13).
  app.addHook('onRequest', (request: FastifyRequest, _reply: FastifyReply, done) => {
    if (safe.has(request.method) || request.routeOptions.config?.effect === 'run') { done(); return }
    if (request.is404 && request.url.startsWith(`${basePath}/tools/`)) { done(); return }
    done(new errors.ReadOnly())
  })
}, { name: 'scopes', dependencies: ['errors'] })
