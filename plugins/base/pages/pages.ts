import { Eta } from 'eta'
import { readAsset } from '../config/index.ts'
import { limits } from '../limits/index.ts'
import { destinationOf, mayLink, publisherOf, redirectSource, websiteOf, type Destination } from './destination.ts'
import { pageHeaders, styleSource } from './headers.ts'
import type { PageScope } from './scope-texts.ts'
import { visibleText, shownName } from './shown.ts'

/** An HTML page, ready to be sent. */
export interface HtmlPage {
  status: number
  headers: Readonly<Record<string, string>>
  html: string
}

/** An OAuth client, by what it says of itself. */
export interface PageClient {
  name: string
  /** The redirect URI of this request: the page says where it leads to, and lets a form's redirect go there. */
  redirectUri: string
}

/** A form's way back. */
interface FormPage {
  /** The value of the field `csrf`. */
  csrf: string
  /** A path on this gateway, with the base path. */
  action: string
  /** Further fields, sent back as they are. */
  hidden: Readonly<Record<string, string>>
}

export interface LoginPage extends FormPage {
  /** The client that asked; undefined: the user came alone. */
  client?: PageClient
  username?: string
  /** Why the last attempt failed, as a sentence. */
  error?: string
  /** 200 where nothing is said. */
  status?: number
  /** Other ways to sign in; `href` is a path on this gateway. */
  others?: ReadonlyArray<{ name: string, href: string }>
}

export interface ConsentPage extends FormPage {
  username: string
  /** `uri`: the client's website, as it says. */
  client: PageClient & { id: string, uri?: string }
  isSelfRegistered: boolean
  scopes: readonly PageScope[]
  /** The resource that the token will be good for (RFC 8707). */
  resource: string
  /** Where the form "Use another account" goes: a path on this gateway. */
  logoutAction: string
}

/** The pages that people see. Strangers' texts are escaped, cut and shown with what is invisible in them. No page has a script. */
export interface Pages {
  /** Asks for username and password: the fields `username` and `password`, `csrf`, and `hidden`. */
  login: (page: LoginPage) => HtmlPage
  /** Asks whether a client may have what it wants: the field `decision`, `allow` or `deny`, with `csrf` and `hidden`. */
  consent: (page: ConsentPage) => HtmlPage
  /**
   * Leaves for the client by way of a path on this gateway that redirects there. Unlike a redirect of the form, this works where the
   * client's own page redirects on: browsers apply the form's `form-action` to every hop.
   */
  leave: (page: { client: PageClient, href: string }) => HtmlPage
  /**
   * An error of which a client is told only if its user wants that, since anybody can have registered it, with any redirect URI (RFC 9700,
   * section 4.11.2).
   * @param href the address of the client with the error
   */
  refused: (page: { title: string, text: string, status: number, client: PageClient, href: string }) => HtmlPage
  /** An error that must not be told to the client by a redirect. */
  problem: (page: { title: string, text: string, status: number }) => HtmlPage
  /**
   * Asks whether somebody wants to log in at an upstream server.
   * @param whose who will act with the login @param href a path on this gateway, which leads to `url` in the end
   */
  start: (page: { server: string, whose: string, href: string, url: string }) => HtmlPage
  /** What stands at the root. @param endpoint the address of MCP; `docs` and `health`: paths on this gateway */
  home: (page: { state: string, connected: number, total: number, endpoint: string, docs: string, health: string }) => HtmlPage
  /** The end of a way that leads nowhere else. */
  done: (page: { title: string, text: string }) => HtmlPage
}

const templates = ['layout', 'home', 'login', 'consent', 'leave', 'start', 'refused', 'message', 'hidden', 'destination'] as const

/** The pages, with templates and style read from `assets/pages/` and compiled. */
export async function loadPages (): Promise<Pages> {
  const eta = new Eta({ autoEscape: true })
  for (const name of templates) eta.loadTemplate(`@${name}`, await readAsset(`pages/${name}.eta`))
  // Browsers turn CRLF into LF before they hash.
  const style = (await readAsset('pages/style.css')).replaceAll('\r\n', '\n').trim()
  // The name stands beside it.
  const icon = (await readAsset('icons/tool-hub.svg')).replace(' role="img" aria-label="Tool-Hub"', ' aria-hidden="true"')
  const source = styleSource(style)

  /** @param next a path that the browser goes to at once */
  function render (template: typeof templates[number], title: string, data: object, next?: string): string {
    const body = eta.render(`@${template}`, data)
    return eta.render('@layout', { title, style, icon, body, next })
  }
  const formHeaders = (redirectUri?: string): HtmlPage['headers'] => {
    const redirect = redirectUri === undefined ? undefined : redirectSource(redirectUri)
    return pageHeaders(source, redirect === undefined ? ["'self'"] : ["'self'", redirect])
  }
  const plainHeaders = pageHeaders(source, ["'none'"])
  const message = (title: string, text: string, status: number): HtmlPage => {
    const data = { title: visibleText(title), text: visibleText(text, limits.pageTexts.text) }
    return { status, headers: plainHeaders, html: render('message', data.title, data) }
  }

  return {
    login ({ client, username = '', error, status = 200, others = [], ...form }) {
      const failed = error === undefined ? undefined : visibleText(error, limits.pageTexts.text)
      const data = {
        ...formOf(form),
        client: client && clientOf(client),
        // A longer name is nobody's.
        username: username.slice(0, limits.pageTexts.text),
        error: failed,
        focus: focusOf(username, failed),
        others: others.map(({ name, href }) => ({ name: shownName(name), href: ownPath(href) }))
      }
      const title = failed === undefined ? 'Sign in' : 'Sign-in failed'
      return { status, headers: formHeaders(client?.redirectUri), html: render('login', title, data) }
    },
    consent ({ username, client, isSelfRegistered, scopes, resource, logoutAction, ...form }) {
      const data = {
        ...formOf(form),
        username: visibleText(username, limits.pageTexts.text),
        client: {
          ...clientOf(client),
          id: visibleText(client.id, limits.pageTexts.text),
          publisher: publisherOf(client.id),
          website: client.uri === undefined ? undefined : websiteOf(client.uri)
        },
        isSelfRegistered,
        scopes: scopes.map(({ name, text }) => ({ name: visibleText(name), text: text && visibleText(text, limits.pageTexts.text) })),
        resource: visibleText(resource, limits.pageTexts.text),
        logoutAction: ownPath(logoutAction)
      }
      return { status: 200, headers: formHeaders(client.redirectUri), html: render('consent', 'Allow access?', data) }
    },
    leave ({ client, href }) {
      const next = ownPath(href)
      const html = render('leave', 'Back to the application', { client: clientOf(client), next }, next)
      return { status: 200, headers: plainHeaders, html }
    },
    home ({ endpoint, docs, health, ...state }) {
      const data = { ...state, endpoint: visibleText(endpoint, limits.pageTexts.text), docs: ownPath(docs), health: ownPath(health) }
      return { status: 200, headers: plainHeaders, html: render('home', 'What this is', data) }
    },
    start ({ server, whose, href, url }) {
      const data = {
        server: shownName(server),
        whose: visibleText(whose, limits.pageTexts.text),
        client: { destination: destinationOf(url) },
        next: ownPath(href)
      }
      return { status: 200, headers: plainHeaders, html: render('start', 'Log in at a server?', data) }
    },
    refused ({ title, text, status, client, href }) {
      const data = {
        title: visibleText(title),
        text: visibleText(text, limits.pageTexts.text),
        client: clientOf(client),
        href: mayLink(href) ? href : undefined
      }
      return { status, headers: plainHeaders, html: render('refused', data.title, data) }
    },
    problem: ({ title, text, status }) => message(title, text, status),
    done: ({ title, text }) => message(title, text, 200)
  }
}

function clientOf ({ name, redirectUri }: PageClient): { name: string, destination: Destination } {
  return { name: shownName(name), destination: destinationOf(redirectUri) }
}

/** The parts of a form: where it goes, and its hidden fields. */
function formOf ({ csrf, action, hidden }: FormPage): { action: string, fields: Array<{ name: string, value: string }> } {
  const fields = Object.entries({ ...hidden, csrf }).map(([name, value]) => ({ name, value }))
  return { action: ownPath(action), fields }
}

/** The field that has the focus: after an error, the one to correct; otherwise none, so that what stands above is read first. */
function focusOf (username: string, error: string | undefined): 'username' | 'password' | undefined {
  if (error === undefined) return undefined
  return username === '' ? 'username' : 'password'
}

/** A path on this gateway. @throws TypeError when it could lead elsewhere */
function ownPath (path: string): string {
  if (!/^\/(?![/\\])[^\s\\]*$/.test(path)) throw new TypeError(`expected a path on this gateway, not ${JSON.stringify(path)}`)
  return path
}
