"""Reports: plain facts -> one HTML file that needs no network and no script. Computes nothing.

from zktrace.report.case import CaseReport, case_html
from zktrace.report.training import read_run, training_html
from zktrace.report.attribution import AttributionReport, attribution_html

No report needs torch, and a case report not even numpy.
"""
