import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { parse } from 'parse5'

/** A browser for forms: it keeps cookies, and follows no redirect by itself. */
export class Browser {
  readonly #origin: string
  readonly #via: (address: URL) => URL
  readonly #cookies = new Map<string, { value: string, path: string }>()
  /** All answers so far. */
  readonly visits: Visit[] = []

  /** @param via the address under which the gateway is asked for one of the browser's, as a proxy does */
  constructor (origin: string, via = (address: URL) => address) {
    this.#origin = origin
    this.#via = via
  }

  async get (url: string): Promise<Visit> { return await this.#send(url, {}) }

  /** Sends a form of a page, with its hidden fields. @param fields what a person fills in */
  async submit ({ forms }: Visit, fields: Record<string, string>, action?: string): Promise<Visit> {
    const form = forms.find((each) => action === undefined || each.action.includes(action))
    assert.ok(form, `no form${action === undefined ? '' : ` for ${action}`}`)
    return await this.post(form.action, { ...form.fields, ...fields })
  }

  async post (path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Visit> {
    return await this.#send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: this.#origin, ...headers },
      body: new URLSearchParams(fields).toString()
    })
  }

  async #send (url: string, init: RequestInit): Promise<Visit> {
    const address = new URL(url, this.#origin)
    const cookie = [...this.#cookies].filter(([, { path }]) => address.pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
    const reply = await fetch(this.#via(address), { ...init, redirect: 'manual', headers: { ...init.headers, cookie: cookie.join('; ') } })
    for (const line of reply.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(/; */)
      const [name = '', value = ''] = pair.split('=', 2)
      const path = attributes.find((each) => /^path=/i.test(each))?.slice(5) ?? '/'
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, { value, path })
    }
    const text = await reply.text()
    const visit: Visit = {
      status: reply.status,
      location: reply.headers.get('location') ?? undefined,
      text,
      headers: reply.headers,
      forms: formsOf(text)
    }
    this.visits.push(visit)
    return visit
  }
}

/** An answer to a browser. */
export interface Visit {
  readonly status: number
  readonly location: string | undefined
  readonly text: string
  readonly headers: Headers
  readonly forms: ReadonlyArray<{ action: string, fields: Record<string, string> }>
}

interface Node { tagName?: string, attrs?: Array<{ name: string, value: string }>, childNodes?: Node[] }

/** The forms of a page, with the values of their hidden fields. */
function formsOf (text: string): Visit['forms'] {
  const forms: Array<{ action: string, fields: Record<string, string> }> = []
  const walk = (node: Node): void => {
    const attribute = (name: string): string => node.attrs?.find((each) => each.name === name)?.value ?? ''
    if (node.tagName === 'form') forms.push({ action: attribute('action'), fields: {} })
    const form = forms.at(-1)
    if (node.tagName === 'input' && attribute('type') === 'hidden' && form) form.fields[attribute('name')] = attribute('value')
    for (const child of node.childNodes ?? []) walk(child)
  }
  walk(parse(text) as Node)
  return forms
}

export interface Person { readonly username: string, readonly password: string }

/** What a client sends to the authorization endpoint, and the verifier that it keeps. */
export function request (clientId: string, more: Record<string, string> = {}): { verifier: string, params: Record<string, string> } {
  const verifier = randomBytes(32).toString('base64url')
  return {
    verifier,
    params: {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: 'http://127.0.0.1:8123/callback',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: 'a state',
      ...more
    }
  }
}

/** A person's way from an authorization request to the client: logs in and allows, where asked. @returns where the browser ends */
export async function allow (browser: Browser, url: string, { username, password }: Person, decision = 'allow'): Promise<URL> {
  let visit = await browser.get(url)
  for (let step = 0; step < 12; step++) {
    if (visit.location !== undefined) {
      const to = new URL(visit.location, url)
      if (to.origin !== new URL(url).origin || to.pathname === '/callback') return to
      visit = await browser.get(to.href)
    } else if (visit.text.includes('name="password"')) visit = await browser.submit(visit, { username, password }, '/login')
    else if (visit.text.includes('name="decision"')) visit = await browser.submit(visit, { decision }, '/consent')
    else assert.fail(`${visit.status} ${visit.text.slice(-1_500)}`)
  }
  assert.fail('the browser goes round in circles')
}

export interface Tokens { access_token: string, refresh_token?: string, token_type: string, expires_in: number, scope: string }

/** A POST of a form to the token endpoint or the revocation endpoint. */
export async function form (url: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
  return await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString()
  })
}

/** Registers a public client. */
export async function register (base: string, more: Record<string, unknown> = {}): Promise<Record<string, string>> {
  const reply = await fetch(`${base}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'A client',
      redirect_uris: ['http://127.0.0.1:8123/callback'],
      token_endpoint_auth_method: 'none',
      ...more
    })
  })
  assert.equal(reply.status, 201, await reply.clone().text())
  return await reply.json() as Record<string, string>
}

/** The fields with which a client redeems a code. */
export interface Code extends Record<string, string> {
  readonly grant_type: string
  readonly code: string
  readonly client_id: string
  readonly redirect_uri: string
  readonly code_verifier: string
}

/** A code for a public client. @param more parameters of the authorization request */
export async function codeFor (
  base: string, person: Person, clientId: string, more: Record<string, string> = {}, browser = new Browser(new URL(base).origin)
): Promise<Code> {
  const { verifier, params: { redirect_uri: redirectUri = '', ...params } } = request(clientId, more)
  const query = new URLSearchParams({ redirect_uri: redirectUri, ...params }).toString()
  const code = (await allow(browser, `${base}/oauth/authorize?${query}`, person)).searchParams.get('code')
  assert.ok(code, 'the browser brings no code')
  return { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: redirectUri, code_verifier: verifier }
}

/** The whole flow of a public client. */
export async function tokensFor (
  base: string, person: Person, more: Record<string, string> = {}, clientId?: string
): Promise<Tokens & { clientId: string }> {
  const id = clientId ?? (await register(base)).client_id ?? ''
  const { resource } = more
  const reply = await form(`${base}/oauth/token`, { ...await codeFor(base, person, id, more), ...(resource === undefined ? {} : { resource }) })
  assert.equal(reply.status, 200, await reply.clone().text())
  return { ...((await reply.json()) as Tokens), clientId: id }
}

/** A person goes on from the page that `authorizationUrl` of a server leads to. @returns the page, and where the browser is sent */
export async function confirm (browser: Browser, address: string): Promise<{ page: Visit, url: string }> {
  const page = await browser.get(address)
  const link = /href="([^"]+\/continue\?proof=[^"]+)"/.exec(page.text)?.[1]
  assert.ok(page.status === 200 && link !== undefined, `${page.status} ${page.text.slice(-800)}`)
  const { location, status, text } = await browser.get(new URL(link, address).href)
  assert.ok(status === 303 && location !== undefined, `${status} ${text.slice(-800)}`)
  return { page, url: location }
}
