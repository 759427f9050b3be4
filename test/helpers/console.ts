// A browser without scripts, for the console: it keeps cookies, and fills in forms.
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Env } from '../../schemas/env.ts'
import { appFor } from './app.ts'
import { fieldOf, multipartOf, multipartType } from './bundles.ts'
import { open, type Stream } from './client.ts'
import { admin, alice } from './doors.ts'
import { until, type Cleanup } from './hub.ts'

/** A page or another answer. */
export interface Answer { readonly status: number, readonly text: string, readonly headers: LightMyRequestResponse['headers'], readonly location: string }

export class Browser {
  readonly cookies = new Map<string, string>()
  readonly #app: FastifyInstance
  readonly #base: string

  constructor (app: FastifyInstance) {
    this.#app = app
    this.#base = `${app.config.basePath}/console`
  }

  /** @param path below the console */
  async get (path: string, options: InjectOptions = {}): Promise<Answer> {
    return await this.ask({ method: 'GET', url: `${this.#base}${path}`, ...options })
  }

  /** Sends a form with the CSRF token of a page. @param from the page, below the console */
  async post (path: string, fields: Readonly<Record<string, string>>, from = '/overview', options: InjectOptions = {}): Promise<Answer> {
    return await this.send(path, { _csrf: await this.csrf(from), ...fields }, options)
  }

  /** Sends a form as it is. */
  async send (path: string, fields: Readonly<Record<string, string>>, { headers, ...options }: InjectOptions = {}): Promise<Answer> {
    return await this.ask({
      method: 'POST',
      url: `${this.#base}${path}`,
      payload: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      ...options
    })
  }

  /** Sends the form of an upload. */
  async upload (path: string, csrf: string, field: string, file: Buffer): Promise<Answer> {
    return await this.ask({
      method: 'POST',
      url: `${this.#base}${path}`,
      payload: multipartOf(file, field, fieldOf('_csrf', csrf)),
      headers: { 'content-type': multipartType }
    })
  }

  async csrf (page: string): Promise<string> {
    return /name="_csrf" value="([^"]+)"/.exec((await this.get(page)).text)?.[1] ?? ''
  }

  async signIn (username: string, password = 'Same-1234'): Promise<Answer> {
    return await this.post('/login', { username, password }, '/login')
  }

  /** The header with its cookies. */
  get cookie (): string { return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') }

  async ask ({ headers, ...options }: InjectOptions): Promise<Answer> {
    const { cookie } = this
    const sent = { host: '127.0.0.1:3000', ...cookie !== '' && { cookie }, ...headers }
    const answer = await this.#app.inject({ ...options, headers: sent })
    for (const { name, value, maxAge } of answer.cookies) {
      if (maxAge === 0) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return { status: answer.statusCode, text: answer.payload, headers: answer.headers, location: String(answer.headers.location ?? '') }
  }
}

/** The browser of somebody who has signed in. */
export async function signedIn (app: FastifyInstance, username = 'admin'): Promise<Browser> {
  const browser = new Browser(app)
  await browser.signIn(username)
  return browser
}

export interface Opened { readonly app: FastifyInstance, readonly browser: Browser }

/** A gateway of an admin and alice, unless the settings have other users, and the browser of the admin. */
export async function openConsole (
  t: Cleanup, settings: object = {}, env: Partial<Env> = {}, more: Parameters<typeof appFor>[3] = {}
): Promise<Opened> {
  const app = await appFor(t, { users: [admin, alice], ...settings }, env, more)
  return { app, browser: await signedIn(app) }
}

/** The same, with these servers, all of them connected. */
export async function openConnected (t: Cleanup, mcpServers: object, settings: object = {}, env: Partial<Env> = {}): Promise<Opened> {
  const opened = await openConsole(t, { mcpServers, ...settings }, env)
  const isConnected = (): boolean => opened.app.upstreams.countByStatus().connected === Object.keys(mcpServers).length
  await until(isConnected, 'a server never connected')
  return opened
}

/** Where an open page hears of changes. */
export const streamOf = ({ text }: Answer): string => decoded(/data-live-stream="([^"]+)"/.exec(text)?.[1] ?? '')

/** Opens such a stream. @param url of it @returns it, and what waits for as many events of a name */
export async function follow (
  t: Cleanup, browser: Browser, url: string
): Promise<{ stream: Stream, told: (event: string, count?: number) => Promise<void> }> {
  const stream = await open(url, { method: 'GET', key: null, headers: { cookie: browser.cookie } })
  t.after(() => { stream.close() })
  const told = async (event: string, count = 1): Promise<void> => {
    await until(() => stream.events.filter(({ name }) => name === event).length >= count, () => `no ${event}: ${stream.body}`)
  }
  return { stream, told }
}

/** The text that HTML stands for. */
export const decoded = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')

/** The fields of the form that changes a record, as the browser would send them. */
export function fieldsOf ({ text }: Answer): Record<string, string> {
  const form = /<form class="(?:sheet narrow|columns[^"]*|stack)"[\s\S]*?<\/form>|<form[^>]* class="stack"[\s\S]*?<\/form>/.exec(text)?.[0] ?? ''
  const inputs = [...form.matchAll(/<input[^>]*\sname="([^"]+)"[^>]*\svalue="([^"]*)"[^>]*>/g)]
    .filter(([input]) => !/type="(?:checkbox|radio)"/.test(input) || / checked/.test(input)).map(([, name = '', value = '']) => [name, value])
  const areas = [...form.matchAll(/<textarea[^>]*\sname="([^"]+)"[^>]*>\n([^<]*)</g)].map(([, name = '', value = '']) => [name, value])
  const selects = [...form.matchAll(/<select[^>]*\sname="([^"]+)"[^>]*>([\s\S]*?)<\/select>/g)].map(([, name = '', options = '']) =>
    [name, /value="([^"]*)" selected/.exec(options)?.[1] ?? ''])
  return Object.fromEntries([...inputs, ...areas, ...selects].map(([name = '', value = '']) => [decoded(name), decoded(value)]))
}
