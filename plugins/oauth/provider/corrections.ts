import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Page } from '../../pages/index.ts'
import { defaultScope } from '../settings.ts'

/** Makes the page for an error that is not told to the client. */
export type ProblemPage = (problem: { error: string, error_description?: string }, status: number) => Page

/** Parameters of OpenID Connect that mean nothing without an ID token. */
const unusedParameters = ['response_mode', 'nonce', 'claims', 'claims_locales', 'max_age', 'id_token_hint', 'acr_values']

type Context = Parameters<Parameters<Provider['use']>[0]>[0]

/** Changes requests before the library sees them, and its answers. */
export async function correct (ctx: Context, next: () => Promise<void>, problemPage: ProblemPage): Promise<void> {
  const isAuthorization = ctx.path.startsWith('/oauth/authorize')
  if (isAuthorization) {
    const query = new URLSearchParams(ctx.querystring)
    for (const name of unusedParameters) query.delete(name)
    if (ctx.path === '/oauth/authorize' && ctx.method === 'GET' && !query.has('scope')) query.set('scope', defaultScope)
    ctx.querystring = query.toString()
  } else {
    // A browser's Accept would make an error of the token endpoint a page.
    ctx.req.headers.accept = 'application/json'
    ctx.set('cache-control', 'no-store')
    if (ctx.querystring !== '') {
      ctx.status = 400
      ctx.body = { error: 'invalid_request', error_description: 'Parameters belong in the body' }
      return
    }
  }
  await next()
  if (ctx.state.problem !== undefined) {
    const { html, headers } = problemPage(ctx.state.problem, ctx.status)
    ctx.set({ ...headers })
    ctx.body = html
  } else if (isAuthorization) errorsIntoQuery(ctx)
  else if (isObject(ctx.body)) delete ctx.body.id_token
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** Where an answer redirects to; empty for any other. Koa returns undefined for a header that is not set, whatever its types say. */
const locationOf = ({ response }: Pick<Context, 'response'>): string => (response.get('location') as string | undefined) ?? ''

/** The library answers unsupported response types in the fragment, where a client that waits for a code does not look. */
function errorsIntoQuery (ctx: Context): void {
  const location = locationOf(ctx)
  if (!location.includes('#')) return
  const url = new URL(location)
  for (const [name, value] of new URLSearchParams(url.hash.slice(1))) url.searchParams.set(name, value)
  url.hash = ''
  ctx.set('location', url.href)
}

/** An answer while the storage is away, unless the client is told of it by a redirect. */
export function answerAway (ctx: KoaContextWithOIDC): void {
  if (locationOf(ctx) !== '') return
  ctx.status = 503
  ctx.set('retry-after', '5')
  ctx.body = { error: 'temporarily_unavailable', error_description: 'The storage cannot be used now' }
}
