import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { loadPages, type HtmlPage, type Pages } from './pages.ts'

declare module 'fastify' {
  interface FastifyInstance { pages: Pages }
}

/** `app.pages`: the HTML pages that people see. They are made here and sent by routes. */
export default fp(async (app) => { app.decorate('pages', await loadPages()) }, { name: 'pages' })

/** Sends a page; its headers replace those of the scope. */
export const sendPage = (reply: FastifyReply, { status, headers, html }: HtmlPage): FastifyReply =>
  reply.code(status).headers(headers).send(html)

export { describeScopes } from './scope-texts.ts'
export type { ConsentPage, LoginPage, HtmlPage as Page, PageClient, Pages } from './pages.ts'
