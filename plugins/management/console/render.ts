import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Eta } from 'eta'
import type { FastifyReply } from 'fastify'
import { assetPath } from '../../base/config/index.ts'
import type { Principal } from '../../settings/index.ts'
import type { AssetNames } from './assets.ts'
import { type Notice, takeNotice, themeOf } from './cookies.ts'
import { capitalizeMessage } from './sentences.ts'

/** A page in the navigation. `page`: its path below the console, and the name of its template. */
export interface NavPage {
  readonly page: string
  readonly title: string
  readonly isShownTo: (principal: Principal) => boolean
}

/** The data of a page. docs/console-design.md lists what templates receive in addition. */
export interface PageData {
  readonly title: string
  /** The parameters of the page's `LoadLivePageData`. Set if the page updates itself. */
  readonly live?: Readonly<Record<string, string>>
  readonly notice?: Notice
  readonly values?: Readonly<Record<string, unknown>>
  readonly errors?: Readonly<Record<string, string>>
  readonly [member: string]: unknown
}

interface RendererOptions {
  /** The path of the console. */
  readonly base: string
  readonly version: string
  readonly readonly: boolean
  readonly assets: AssetNames
  /** The pages in the order of the navigation. */
  readonly nav: readonly NavPage[]
}

/** Renders pages with the templates of `assets/console/`. Values are HTML-escaped. */
export class Renderer {
  readonly #options: RendererOptions
  readonly #eta: Eta

  /** @param eta the result of `loadPageTemplates` */
  constructor (eta: Eta, options: RendererOptions) {
    this.#eta = eta
    this.#options = options
  }

  /** Sends a page. @param page the name of its template */
  send (reply: FastifyReply, page: string, data: PageData, status = 200): FastifyReply {
    return reply.code(status).type('text/html; charset=utf-8').send(this.html(reply, page, data))
  }

  /** Renders a page with the stored notice, if any, and deletes the notice's cookie. @param page the template's name */
  html (reply: FastifyReply, page: string, { live, ...data }: PageData): string {
    const { request } = reply
    const { base, assets, nav, version, readonly } = this.#options
    const { principal } = request
    const user = principal && { username: principal.username ?? '', isAdmin: principal.isAdmin }
    const it = {
      base,
      page,
      path: request.url,
      csrf: reply.csrf(),
      user,
      nav: principal === null
        ? []
        : nav.filter(({ isShownTo }) => isShownTo(principal)).map(({ page: name, title }) =>
          ({ href: `${base}/${name}`, title, page: name, isCurrent: isBelow(request.url, `${base}/${name}`) })),
      theme: themeOf(request),
      readonly,
      notice: takeNotice(reply, base),
      live: live && `${base}/live?${new URLSearchParams({ page, ...live }).toString()}`,
      assets: {
        css: `${base}/assets/${assets.css}`, js: `${base}/assets/${assets.js}`, icons: `${base}/assets/${assets.icons}`
      },
      version,
      sentence: capitalizeMessage,
      values: {},
      errors: {},
      ...data
    }
    return this.#eta.render('@layout', { ...it, body: this.#eta.render(`@pages/${page}`, it) })
  }

  /** Returns a link to the page of the navigation that a URL is below; otherwise, to the overview. */
  linkToParentPage (url: string, principal: Principal): { readonly label: string, readonly href: string } {
    const { base, nav } = this.#options
    const list = nav.find(({ page, isShownTo }) => url.startsWith(`${base}/${page}/`) && isShownTo(principal))
    return { label: `Go to ${list?.title ?? 'the overview'}`, href: `${base}/${list?.page ?? 'overview'}` }
  }
}

/** Loads the templates: `@layout`, `@pages/<page>`, and `@<component>`. */
export async function loadPageTemplates (): Promise<Eta> {
  const eta = new Eta({ autoEscape: true })
  const root = assetPath('console')
  const load = async (folder: string, prefix: string): Promise<void> => {
    for (const name of await readdir(join(root, folder))) {
      if (!name.endsWith('.eta')) continue
      eta.loadTemplate(`@${prefix}${basename(name, '.eta')}`, await readFile(join(root, folder, name), 'utf8'))
    }
  }
  await load('', '')
  await load('components', '')
  await load('pages', 'pages/')
  return eta
}

/** Whether a URL is a page (with any query) or below it. */
const isBelow = (url: string, path: string): boolean =>
  url.startsWith(path) && /^(?:[/?]|$)/.test(url.slice(path.length))
