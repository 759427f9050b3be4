ALTER TABLE "activities" ADD COLUMN "client_id" text;--> statement-breakpoint
ALTER TABLE "activities" ADD COLUMN "client_name" text;--> statement-breakpoint
ALTER TABLE "activities" ADD COLUMN "data" jsonb;--> statement-breakpoint
ALTER TABLE "activities" ADD COLUMN "sealed" text;--> statement-breakpoint
ALTER TABLE "activities" ADD COLUMN "sealed_by" text;--> statement-breakpoint
CREATE INDEX "activities_sealed_by" ON "activities" USING btree ("sealed_by") WHERE "activities"."sealed_by" is not null;