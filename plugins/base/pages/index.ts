export { type Page, type PageClient, type Pages, describeScopes, sendPage } from './plugin.ts'
export { visibleText } from './shown.ts'
