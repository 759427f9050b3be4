// A browser without scripts, for the console: it keeps cookies, and fills in forms.
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'

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

  async csrf (page: string): Promise<string> {
    return /name="_csrf" value="([^"]+)"/.exec((await this.get(page)).text)?.[1] ?? ''
  }

  async signIn (username: string, password = 'Same-1234'): Promise<Answer> {
    return await this.post('/login', { username, password }, '/login')
  }

  async ask ({ headers, ...options }: InjectOptions): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const sent = { host: '127.0.0.1:3000', ...cookie !== '' && { cookie }, ...headers }
    const answer = await this.#app.inject({ ...options, headers: sent })
    for (const { name, value, maxAge } of answer.cookies) {
      if (maxAge === 0) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return { status: answer.statusCode, text: answer.payload, headers: answer.headers, location: String(answer.headers.location ?? '') }
  }
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
