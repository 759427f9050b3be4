export { parseSize, collectBodyText, parseJson, parseLargeJson, readJsonBody, readBodyText } from './body.ts'
export { checkUnchanged, type DateRange, parseDateRange } from './dates.ts'
export {
  unmeasuredReservationOf, reserveBodyMemory, type ReserveMemory, reserveUntilClosed, valueReservationOf
} from './memory.ts'
export { limitFormFields, refuseUnknownQuery } from './query.ts'
export { exemptFromRequestTimeout } from './unread.ts'
export { memoryOfJson, countValues, countWords } from './values.ts'
