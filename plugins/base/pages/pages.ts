import type { Static } from '@sinclair/typebox'
import { createHash } from 'node:crypto'
import { Eta } from 'eta'
import type { MyVariables } from '../../../schemas/server-api.ts'
import { readAssetSync } from '../config/index.ts'
import {
  destinationOf, isSafeLink, clientIdHost, formActionSource, visibleName, visibleText, websiteHost, type Destination
} from './display.ts'
import { baseLimits } from '../limits/index.ts'

/** An HTML page, ready to be sent. */
export interface HtmlPage {
  status: number
  headers: Readonly<Record<string, string>>
  html: string
}

/** An OAuth client, for display. */
export interface PageClient {
  name: string
  /** The redirect URI of this request. The page shows where it leads, and the CSP allows forms to redirect to it. */
  redirectUri: string
}

/** What all pages with a form have in common. */
interface FormPage {
  /** The value of the field `csrf`. */
  csrf: string
  /** The target: a path on this gateway, including the base path. */
  action: string
  /** Further hidden fields, which are sent back unchanged. */
  hidden: Readonly<Record<string, string>>
}

export interface LoginPage extends FormPage {
  /** The client that requests the login; undefined if there is none. */
  client?: PageClient
  username?: string
  /** The reason why the last attempt failed, as a sentence. */
  error?: string
  /** Default: 200. */
  status?: number
  /** Other ways to sign in; `href` is a path on this gateway. */
  others?: ReadonlyArray<{ name: string, href: string }>
}

/** The page on which a user enters the values that a server requires from each of its users. */
export interface UserValuesPage extends FormPage {
  server: string
  /** The user whom the values are for, in words. */
  whose: string
  /** Where the values are sent, in words. */
  destination: string
  /** `isSet`: a value was entered before, and is kept if the field is left empty. */
  variables: Readonly<Static<typeof MyVariables>>
  /** The reason why the values in the last attempt were not stored, as a sentence. */
  error?: string
}

/** An OAuth scope as shown on the consent page. */
export interface PageScope {
  name: string
  /** The end of the sentence "The application will be able to …"; undefined: the name is shown instead. */
  text?: string
}

export interface ConsentPage extends FormPage {
  username: string
  /** `uri`: the client's website, according to the client. */
  client: PageClient & { id: string, uri?: string }
  isSelfRegistered: boolean
  scopes: readonly PageScope[]
  /** The resource that the token will be valid for (RFC 8707). */
  resource: string
  /** The target of the form "Use another account": a path on this gateway. */
  logoutAction: string
}

/**
 * The HTML pages outside the console. Untrusted texts are escaped, truncated, and without invisible characters. The
 * pages have no scripts.
 */
export interface Pages {
  /**
   * Asks for username and password. The form sends the fields `username`, `password`, `csrf`, and those in `hidden`.
   */
  login: (page: LoginPage) => HtmlPage
  /**
   * Asks for consent to a client's request. The form sends `decision` (`allow` or `deny`), `csrf`, and the fields in
   * `hidden`.
   */
  consent: (page: ConsentPage) => HtmlPage
  /**
   * Navigates to a path on this gateway that redirects to the client. If the form itself were answered with a redirect,
   * it would fail when the client redirects again, since browsers apply `form-action` to the whole chain of redirects.
   */
  leave: (page: { client: PageClient, href: string }) => HtmlPage
  /**
   * Shows an error, with a link to the client. There is no automatic redirect, since anybody can register a client with
   * any redirect URI (RFC 9700, section 4.11.2).
   * @param href the client's redirect URI with the error
   */
  refused: (page: { title: string, text: string, status: number, client: PageClient, href: string }) => HtmlPage
  /** Shows an error that must not be reported to the client. */
  problem: (page: { title: string, text: string, status: number }) => HtmlPage
  /**
   * Asks whether the user wants to log in at an upstream server.
   * @param whose the user, key or group of people that the login is for, in words
   * @param href a path on this gateway that redirects to `url`
   * @param url the authorization endpoint, whose host is shown
   */
  upstreamLogin: (page: { server: string, whose: string, href: string, url: string }) => HtmlPage
  /** Asks a user for the values that a server requires. The form sends the fields `value.<name>` and `csrf`. */
  userValues: (page: UserValuesPage) => HtmlPage
  /** The page at the root. @param endpoint the MCP URL; `docs` and `health`: paths on this gateway */
  home: (page: { state: string, connected: number, total: number, endpoint: string, docs: string, health: string }) =>
  HtmlPage
  /** Says that a login has ended, if there is no client to redirect to. */
  done: (page: { title: string, text: string }) => HtmlPage
}

const templates =
  ['layout', 'home', 'login', 'consent', 'leave', 'start', 'values', 'refused', 'message', 'hidden', 'destination'] as
  const

/** Creates the pages, with templates and style from `assets/pages/`. */
export function loadPages (): Pages {
  const eta = new Eta({ autoEscape: true })
  for (const name of templates) eta.loadTemplate(`@${name}`, readAssetSync(`pages/${name}.eta`))
  // Browsers convert CRLF to LF before hashing.
  const style = (readAssetSync('pages/style.css')).replaceAll('\r\n', '\n').trim()
  // The icon needs no label of its own, since the text beside it says the same.
  const icon =
    (readAssetSync('icons/tool-hub.svg')).replace(' role="img" aria-label="Tool-Hub"', ' aria-hidden="true"')
  const source = styleSource(style)

  /** @param next a path on this gateway to which the page navigates immediately */
  function render (template: typeof templates[number], title: string, data: object, next?: string): string {
    const body = eta.render(`@${template}`, data)
    return eta.render('@layout', { title, style, icon, body, next })
  }
  const formHeaders = (redirectUri?: string): HtmlPage['headers'] => {
    const redirect = redirectUri === undefined ? undefined : formActionSource(redirectUri)
    return pageHeaders(source, redirect === undefined ? ["'self'"] : ["'self'", redirect])
  }
  const plainHeaders = pageHeaders(source, ["'none'"])
  const message = (title: string, text: string, status: number): HtmlPage => {
    const data = { title: visibleText(title), text: visibleText(text, baseLimits.pageTexts.text) }
    return { status, headers: plainHeaders, html: render('message', data.title, data) }
  }

  return {
    login ({ client, username = '', error, status = 200, others = [], ...form }) {
      const failed = error === undefined ? undefined : visibleText(error, baseLimits.pageTexts.text)
      const data = {
        ...formOf(form),
        client: client && clientOf(client),
        // No username is longer than this.
        username: username.slice(0, baseLimits.pageTexts.text),
        error: failed,
        focus: focusOf(username, failed),
        others: others.map(({ name, href }) => ({ name: visibleName(name), href: ownPath(href) }))
      }
      const title = failed === undefined ? 'Sign in' : 'Sign-in failed'
      return { status, headers: formHeaders(client?.redirectUri), html: render('login', title, data) }
    },
    consent ({ username, client, isSelfRegistered, scopes, resource, logoutAction, ...form }) {
      const data = {
        ...formOf(form),
        username: visibleText(username, baseLimits.pageTexts.text),
        client: {
          ...clientOf(client),
          id: visibleText(client.id, baseLimits.pageTexts.text),
          publisher: clientIdHost(client.id),
          website: client.uri === undefined ? undefined : websiteHost(client.uri)
        },
        isSelfRegistered,
        scopes: scopes.map(
          ({ name, text }) => ({ name: visibleText(name), text: text && visibleText(text, baseLimits.pageTexts.text) })
        ),
        resource: visibleText(resource, baseLimits.pageTexts.text),
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
      const data = {
        ...state,
        endpoint: visibleText(endpoint, baseLimits.pageTexts.text),
        docs: ownPath(docs),
        health: ownPath(health)
      }
      return { status: 200, headers: plainHeaders, html: render('home', 'What this is', data) }
    },
    upstreamLogin ({ server, whose, href, url }) {
      const data = {
        server: visibleName(server),
        whose: visibleText(whose, baseLimits.pageTexts.text),
        client: { destination: destinationOf(url) },
        next: ownPath(href)
      }
      return { status: 200, headers: plainHeaders, html: render('start', 'Log in at a server?', data) }
    },
    userValues ({ server, whose, destination, variables, error, ...form }) {
      const { text } = baseLimits.pageTexts
      const data = {
        ...formOf(form),
        server: visibleName(server),
        whose: visibleText(whose, text),
        destination: visibleText(destination, text),
        variables: variables.map(({ title, description, ...variable }) => ({
          ...variable,
          title: title === undefined ? variable.name : visibleText(title, text),
          description: description === undefined ? undefined : visibleText(description, text)
        })),
        error: error === undefined ? undefined : visibleText(error, text)
      }
      const status = error === undefined ? 200 : 400
      return { status, headers: formHeaders(), html: render('values', 'Your values for a server', data) }
    },
    refused ({ title, text, status, client, href }) {
      const data = {
        title: visibleText(title),
        text: visibleText(text, baseLimits.pageTexts.text),
        client: clientOf(client),
        href: isSafeLink(href) ? href : undefined
      }
      return { status, headers: plainHeaders, html: render('refused', data.title, data) }
    },
    problem: ({ title, text, status }) => message(title, text, status),
    done: ({ title, text }) => message(title, text, 200)
  }
}

function clientOf ({ name, redirectUri }: PageClient): { name: string, destination: Destination } {
  return { name: visibleName(name), destination: destinationOf(redirectUri) }
}

/** Returns the target and the hidden fields of a form. */
function formOf (
  { csrf, action, hidden }: FormPage
): { action: string, fields: Array<{ name: string, value: string }> } {
  const fields = Object.entries({ ...hidden, csrf }).map(([name, value]) => ({ name, value }))
  return { action: ownPath(action), fields }
}

/** The field to focus: after an error, the one to correct; otherwise none, so that screen readers begin at the top. */
function focusOf (username: string, error: string | undefined): 'username' | 'password' | undefined {
  if (error === undefined) return undefined
  return username === '' ? 'username' : 'password'
}

/** Returns a path after checking that it is on this gateway. @throws TypeError if it could lead to another host */
function ownPath (path: string): string {
  if (!/^\/(?![/\\])[^\s\\]*$/.test(path)) {
    throw new TypeError(`expected a path on this gateway, not ${JSON.stringify(path)}`)
  }
  return path
}

/** The CSP source expression of an inline style. @param style the exact text between the tags */
const styleSource = (style: string): string => `'sha256-${createHash('sha256').update(style).digest('base64')}'`

/**
 * Creates the headers of a page.
 * @param style the CSP source for `style-src`
 * @param formAction the CSP sources for `form-action`
 */
function pageHeaders (style: string, formAction: readonly string[]): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [
      "default-src 'none'",
      `style-src ${style}`,
      `form-action ${formAction.join(' ')}`,
      "frame-ancestors 'none'",
      "base-uri 'none'"
    ].join('; '),
    // With `no-referrer`, browsers send `Origin: null` with a form, which the Origin check rejects. `same-origin` hides
    // the Referer from other origins too.
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // A browser-based client may open the login in a popup. Any other value would cut off the popup from the client.
    'cross-origin-opener-policy': 'unsafe-none'
  }
}
