import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { loadPages, type HtmlPage, type Pages } from './pages.ts'

declare module 'fastify' {
  interface FastifyInstance { pages: Pages }
}

/** Decorates the app with `pages`: the HTML pages that routes outside the console send, such as logins and errors. */
export default fp(async (app) => {
  let pages: Pages | undefined
  // The templates are read and compiled on first use.
  app.decorate('pages', {
    getter: () => {
      pages ??= loadPages()
      return pages
    }
  })
}, { name: 'pages' })

/** Sends a page. Its headers replace headers of the same names that hooks have set. */
export const sendPage = (reply: FastifyReply, { status, headers, html }: HtmlPage): FastifyReply =>
  reply.code(status).headers(headers).send(html)

export { type HtmlPage as Page, type PageClient, type Pages } from './pages.ts'
export { describeScopes } from './scopes.ts'
export { visibleText } from './display.ts'
