import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Page, PageClient } from '../../../base/pages/index.ts'
import { isObject } from '../../../../protocol/json.ts'
import { defaultScope } from '../settings.ts'

/** An OAuth error as oidc-provider reports it. */
export interface OAuthProblem { readonly error: string, readonly error_description?: string }

export interface CorrectionDeps {
  /** Renders the page for an error that is not reported to the client. */
  readonly problemPage: (problem: OAuthProblem, status: number) => Page
  /**
   * Renders the page that is shown instead of a redirect with an error. The error reaches the client only if the user
   * follows the link on the page.
   * @param href the target of the link: the redirect URI with the error
   */
  readonly refusalPage: (problem: OAuthProblem, status: number, client: PageClient, href: string) => Page
  /** Whether an admin created a client. @throws StorageError */
  readonly isCreatedByAdmin: (clientId: string) => Promise<boolean>
}

/**
 * Parameters of authorization requests that are ignored: the gateway issues no ID tokens, and returns codes in the
 * query only.
 */
const unusedParameters = [
  'response_mode', 'nonce', 'claims', 'claims_locales', 'max_age', 'id_token_hint', 'acr_values'
]

type Context = Parameters<Parameters<Provider['use']>[0]>[0]

/**
 * Adjusts a request before oidc-provider handles it with `next`, and its response afterwards. Refuses parameters in the
 * query of all endpoints except the authorization endpoint.
 */
export async function correctRequestAndResponse (
  ctx: Context, next: () => Promise<void>, deps: CorrectionDeps
): Promise<void> {
  const isAuthorization = ctx.path.startsWith('/oauth/authorize')
  if (isAuthorization) {
    const query = new URLSearchParams(ctx.querystring)
    for (const name of unusedParameters) query.delete(name)
    // An empty scope is treated as an absent one (RFC 6749, section 3.3).
    const hasScope = query.getAll('scope').some((scope) => scope.trim() !== '')
    if (ctx.path === '/oauth/authorize' && ctx.method === 'GET' && !hasScope) query.set('scope', defaultScope)
    // `select_account` means `login` here: a user selects an account by logging in to it.
    const [prompt, ...more] = query.getAll('prompt')
    if (prompt !== undefined && more.length === 0) query.set('prompt', prompt.replace('select_account', 'login'))
    ctx.querystring = query.toString()
  } else {
    // If the Accept header of a token request prefers HTML, the library would report an error as an HTML page.
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
    const problem = ctx.state.isUnavailable === true ? unavailableProblem : ctx.state.problem
    sendPage(ctx, deps.problemPage(problem, ctx.status))
  } else if (isAuthorization) {
    moveErrorsToQuery(ctx)
    await replaceErrorRedirect(ctx, deps)
  } else if (isObject(ctx.body)) delete ctx.body.id_token
}

function sendPage (ctx: Context, { html, headers, status }: Page): void {
  ctx.status = status
  ctx.set({ ...headers })
  ctx.body = html
}

/**
 * Shows a page in place of a redirect that reports an error to a client before the user was asked anything: since
 * anyone can register a client, the gateway would otherwise be an open redirector (RFC 9700, section 4.11.2). Clients
 * created by an admin get the redirect.
 */
async function replaceErrorRedirect (
  ctx: Context, { isCreatedByAdmin, refusalPage }: CorrectionDeps
): Promise<void> {
  const { oidc } = ctx as Partial<KoaContextWithOIDC>
  const location = locationOf(ctx)
  if (oidc?.route !== 'authorization' || !URL.canParse(location)) return
  const { searchParams } = new URL(location)
  const error = searchParams.get('error')
  const { client } = oidc
  if (error === null || !client || await isCreatedByAdmin(client.clientId).catch(() => false)) return
  const [isFault, isUnavailable] = [error === 'server_error', ctx.state.isUnavailable === true]
  const status = isUnavailable ? 503 : isFault ? 500 : 400
  const problem = isUnavailable
    ? unavailableProblem
    : { error, error_description: searchParams.get('error_description') ?? undefined }
  ctx.remove('location')
  sendPage(
    ctx, refusalPage(problem, status, { name: client.clientName ?? client.clientId, redirectUri: location }, location)
  )
}

/** Returns the target of a redirect, or ''. Contrary to its types, Koa returns undefined for a missing header. */
const locationOf = ({ response }: Pick<Context, 'response'>): string =>
  (response.get('location') as string | undefined) ?? ''

/**
 * Moves errors from the fragment to the query: the library reports unsupported response types in the fragment, which a
 * client that expects a code does not read.
 */
function moveErrorsToQuery (ctx: Context): void {
  const location = locationOf(ctx)
  if (!location.includes('#')) return
  const url = new URL(location)
  for (const [name, value] of new URLSearchParams(url.hash.slice(1))) url.searchParams.set(name, value)
  url.hash = ''
  ctx.set('location', url.href)
}

const unavailableProblem: OAuthProblem = {
  error: 'temporarily_unavailable',
  error_description: 'The storage cannot be used now; try again in a moment'
}

/**
 * Responds with 503 to a request that failed because the storage is unavailable, unless the response is already a
 * redirect. `correctRequestAndResponse` replaces the JSON body by a page if a browser sent the request.
 */
export function answerUnavailable (ctx: KoaContextWithOIDC): void {
  ctx.state.isUnavailable = true
  if (locationOf(ctx) !== '') return
  ctx.status = 503
  ctx.set('retry-after', '5')
  ctx.body = unavailableProblem
}
