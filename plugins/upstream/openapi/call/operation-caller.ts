import { rpcCode, RpcError, UpstreamError } from '../../../../protocol/errors.ts'
import { memberOf } from '../../../../protocol/json.ts'
import type { ServerConfig } from '../../../../schemas/server.ts'
import { type Outbound, outboundAccessOf } from '../../../base/outbound/index.ts'
import { containsCredential } from '../../../base/secrets/index.ts'
import type { ApiWithCredentials } from '../api.ts'
import { toHeader } from '../http-syntax.ts'
import type { CompiledDescription, OperationPlan, CredentialDefaults } from '../plan.ts'
import { ArgumentError } from '../plan.ts'
import { toRequest, type ApiRequest } from './request.ts'
import { errorResult, toToolResult, type ApiResponse } from './result.ts'
import { upstreamLimits } from '../../limits.ts'

interface OperationCallerOptions {
  config: ServerConfig
  outbound: Outbound
  /** Returns the passed-on headers of the connection's client, used if a call has no headers of its own. */
  clientHeaders?: () => Readonly<Record<string, string>> | undefined
  /** Whether a value contains a credential of this gateway. Default: decided by its form. */
  isOwnCredential?: ((value: string) => boolean) | undefined
  warn: (sentence: string) => void
}

/** A `tools/call`: the tool's name, its `params` as JSON text, and the passed-on headers of the client. */
interface OperationCall {
  name: unknown
  paramsText: string
  headers: Readonly<Record<string, string>> | undefined
  /** The owner whose memory the response uses. */
  memoryOwner: string
  signal: AbortSignal
}

/** The longest possible timeout, in ms. Requests need none of their own: the call's deadline aborts them. */
const noTimeout = 2 ** 31 - 1

const noCredentialsMessage =
  'the gateway could not get credentials for it: those who manage the server find the reason in the log'

/** Calls the operations of an API as tools. */
export class OperationCaller {
  readonly #options: OperationCallerOptions
  /** Why the last call got no response; undefined if it got one. */
  #failure: string | undefined
  /** Origins about which a warning was logged. */
  readonly #warned = new Set<string>()

  constructor (options: OperationCallerOptions) {
    this.#options = options
  }

  /**
   * Checks that the URL of the API is known, and that the configured credentials may be sent there.
   * @throws UpstreamError if neither the configuration nor the description states the URL of the API, or if the
   *   description states one that must not get the configured credentials
   */
  assertServer (compiled: CompiledDescription): void {
    const { origin } = new URL(this.#defaultServer(compiled))
    if (!this.#hasCredentials || origin === this.#credentialOrigin(compiled)) return
    throw new UpstreamError(
      'refused',
      `the description has the server ${origin}, but was fetched from another origin: to send the credentials of ` +
      '"openapi.security" there, set "url" to the address of the API, and "openapi.url" to that of the description'
    )
  }

  /**
   * Calls a tool.
   * @returns the tool result, as JSON text
   * @throws RpcError for an unknown tool; UpstreamError if there is no response or no access token
   */
  async call (
    api: ApiWithCredentials,
    compiled: CompiledDescription,
    { name, paramsText, headers, memoryOwner, signal }: OperationCall
  ): Promise<string> {
    const index = typeof name === 'string' ? compiled.names.indexOf(name) : -1
    const plan = JSON.parse(compiled.plans[index] ?? 'null') as OperationPlan | null
    if (!plan) {
      throw new RpcError(rpcCode.invalidParams, `Unknown tool: ${memberOf(paramsText, 'name') ?? 'it has no name'}`)
    }
    let request: ApiRequest
    try {
      request = toRequest(plan, paramsText, this.#serverOf(plan, compiled))
    } catch (error) {
      if (error instanceof ArgumentError) return errorResult(error.message)
      throw error
    }
    if (this.#containsOwnCredential(request)) {
      return errorResult(
        'An argument for a header or a cookie contains a credential of this gateway, which is never forwarded'
      )
    }
    const { credentials } = api
    const securityDefaults = this.#securityDefaults(compiled)
    const isConfigured = this.#addHeaders(request, headers, compiled)
    if (!isConfigured && !plan.anonymous && this.#hasCredentials) {
      this.#warnOfOrigin(request.origin)
      return errorResult(
        'The credentials of this API are for another server than this operation, so it was not called'
      )
    }
    const authorize = async (): Promise<string | undefined> => await credentials.authorize(request, securityDefaults)
      .catch((error: unknown) => { throw this.#toPublicError(error, noCredentialsMessage) })
    const token = isConfigured && !plan.anonymous ? await authorize() : undefined
    const response = await this.#fetch(request, memoryOwner, signal)
    this.#failure = undefined
    if (response.status !== 401 || token === undefined) return toToolResult(response)
    // A request refused with 401 was not executed, so it is sent once more with a new token.
    credentials.invalidate(token)
    request.headers.delete('authorization')
    await authorize()
    return toToolResult(await this.#fetch(request, memoryOwner, signal))
  }

  /**
   * Whether a header or a cookie of a request contains a credential of this gateway.
   * @param request a request to which no configured headers and credentials were added yet
   */
  #containsOwnCredential ({ headers, cookies }: ApiRequest): boolean {
    const { isOwnCredential = containsCredential } = this.#options
    return [...headers.values(), ...cookies].some(isOwnCredential)
  }

  /**
   * Adds the headers of the configuration and of the client, if the request goes to the origin that gets the
   * credentials.
   * @returns whether it does, so that credentials may be added, too
   */
  #addHeaders (request: ApiRequest, headers: OperationCall['headers'], compiled: CompiledDescription): boolean {
    const { config, clientHeaders } = this.#options
    if (!request.headers.has('accept')) request.headers.set('accept', 'application/json, text/*;q=0.9, */*;q=0.8')
    if (this.#credentialOrigin(compiled) !== request.origin) return false
    for (const [given, value] of Object.entries({ ...(headers ?? clientHeaders?.()), ...config.headers })) {
      const [name, sent] = toHeader(given, value)
      if (name === 'cookie') request.cookies.push(sent)
      else if (name !== 'content-type' || request.body === undefined) request.headers.set(name, sent)
    }
    return true
  }

  async #fetch (request: ApiRequest, memoryOwner: string, signal: AbortSignal): Promise<ApiResponse> {
    const { config, outbound } = this.#options
    const { method, origin, path, query, configuredQuery, cookies, body } = request
    const headers = Object.fromEntries(request.headers)
    if (cookies.length > 0) headers.cookie = cookies.join('; ')
    const url = `${origin}${path}`
    try {
      const response = await outbound.fetch(query.length > 0 ? `${url}?${query.join('&')}` : url, {
        ...outboundAccessOf(config),
        method: method as 'GET',
        headers,
        body,
        maxSize: upstreamLimits.openapi.answer,
        timeout: noTimeout,
        memoryOwner,
        signal,
        returnsRedirects: true
      })
      return { method, url, configuredQuery, ...response }
    } catch (error) {
      throw error instanceof UpstreamError && error.didNotRun
        ? this.#toPublicError(error, 'it cannot be reached')
        : error
    }
  }

  /**
   * Logs why an operation could not be called, unless the call before failed for the same reason.
   * @param message the message for clients
   * @returns the error to throw. Its fault `refused` keeps the link: an unreachable API is no reason to read its
   * description again.
   */
  #toPublicError (error: unknown, message: string): unknown {
    if (!(error instanceof UpstreamError)) return error
    const { message: detail, status } = error
    if (this.#failure !== detail) this.#options.warn(`an operation could not be called: ${detail}`)
    this.#failure = detail
    return new UpstreamError('refused', message, { isPublic: true, detail, status })
  }

  /** Whether the configuration states credentials. */
  get #hasCredentials (): boolean {
    const { openapi } = this.#options.config
    return openapi?.security !== undefined && openapi.security.type !== 'none'
  }

  /**
   * Returns the only origin to which configured headers and credentials are sent: the origin of the configured URL of
   * the API, or else of the description's URL. Only a description within the configuration can select another origin.
   */
  #credentialOrigin (compiled: CompiledDescription): string | undefined {
    const { url, openapi } = this.#options.config
    const stated = this.#configuredUrl ?? (openapi?.schema === undefined ? openapi?.url ?? url : compiled.serverUrl)
    return stated === undefined || !URL.canParse(stated) ? undefined : new URL(stated).origin
  }

  /**
   * Returns the description's defaults for credentials; a fetched description cannot name addresses at other origins.
   */
  #securityDefaults (compiled: CompiledDescription): CredentialDefaults {
    const { credentialDefaults: securityDefaults } = compiled
    if (this.#options.config.openapi?.schema !== undefined) return securityDefaults
    const origin = this.#credentialOrigin(compiled)
    const onlySameOrigin = (address: string | undefined): string | undefined =>
      address !== undefined && URL.canParse(address) && new URL(address).origin === origin ? address : undefined
    const { apiKey, tokenUrl, openIdConnectUrl } = securityDefaults
    return { apiKey, tokenUrl: onlySameOrigin(tokenUrl), openIdConnectUrl: onlySameOrigin(openIdConnectUrl) }
  }

  /** Logs that operations at an origin cannot be called: once per origin, and for a limited number of origins. */
  #warnOfOrigin (origin: string): void {
    if (this.#warned.has(origin) || this.#warned.size >= upstreamLimits.openapi.warnings) return
    this.#warned.add(origin)
    this.#options.warn(`its description has operations at ${origin}, which cannot be called, since its credentials ` +
      'are for another origin')
  }

  /** The configured URL of the API; undefined if `url` is not set, or is the URL of the description. */
  get #configuredUrl (): string | undefined {
    const { url, openapi } = this.#options.config
    return openapi?.url !== undefined || openapi?.schema !== undefined ? url : undefined
  }

  #serverOf ({ server }: OperationPlan, compiled: CompiledDescription): string {
    const configuredUrl = this.#configuredUrl
    if (server === undefined) return this.#defaultServer(compiled)
    if (configuredUrl === undefined || compiled.serverUrl === undefined) return server
    // If the operation's server has the host of the description's server, the configured host is used instead.
    const [own, described] = [new URL(server), new URL(compiled.serverUrl)]
    if (own.host !== described.host) return server
    return own.pathname === described.pathname
      ? configuredUrl
      : new URL(`${own.pathname}${own.search}`, configuredUrl).href
  }

  #defaultServer (compiled: CompiledDescription): string {
    const server = this.#configuredUrl ?? compiled.serverUrl
    if (server === undefined) {
      throw new UpstreamError(
        'refused', 'the description has no server with an absolute URL: set "url" to the address of the API'
      )
    }
    return server
  }
}
